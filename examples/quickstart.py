"""An orders server: look things up freely, cancel nothing without a person's yes.

Serve it on stdio with `stanchion run examples/quickstart.py`.
"""

from dataclasses import dataclass

from stanchion import Stanchion, ToolCall, ToolError, Verdict, allow, ask

app = Stanchion("orders", instructions="Look an order up before you cancel it.", server_version="1.0")


@dataclass
class Order:
    """One order, as the model sees it."""

    id: str
    customer: str
    items: list[str]
    status: str = "open"


ORDERS = {
    "A-17": Order("A-17", "Ada", ["lamp", "shade"]),
    "B-42": Order("B-42", "Brook", ["desk"], status="shipped"),
}


@app.tool(title="Look an order up", read_only=True)
async def lookup(order_id: str) -> Order:
    """Find an order by its number.

    Args:
        order_id: The number on the receipt, such as A-17.
    """
    if order_id not in ORDERS:
        raise ToolError(f"There is no order {order_id}. Known: {', '.join(ORDERS)}.")
    return ORDERS[order_id]


@app.tool(title="Cancel an order", destructive=True, timeout=30.0)
async def cancel_order(order_id: str, reason: str = "") -> str:
    """Cancel an order; this cannot be undone."""
    order = await lookup(order_id)
    order.status = "cancelled"
    return f"Order {order_id} is cancelled. {reason}".strip()


@app.authorizer
def rules(call: ToolCall) -> Verdict:
    """Decide every call: whatever destroys is asked about, the rest may run."""
    if call.tool.destructive:
        return ask(f"Cancel order {call.arguments.get('order_id')}?")
    return allow()


@app.resource("orders://{order_id}/receipt", title="A receipt", mime_type="text/plain")
async def receipt(order_id: str) -> str:
    """Print the receipt of an order."""
    order = await lookup(order_id)
    return "\n".join([f"Receipt {order.id} for {order.customer}", *(f"- {item}" for item in order.items)])


@app.prompt(title="Write to the customer")
async def apology(order_id: str, tone: str = "warm") -> str:
    """Ask the model for a letter about a late order."""
    order = await lookup(order_id)
    return f"Write a {tone} apology to {order.customer}: order {order.id} is late."


if __name__ == "__main__":
    app.run()
