"""The server of the tour: orders to look up, to pack and to cancel, and an export that always crashes."""

import asyncio
from dataclasses import dataclass

from stanchion import Context, Stanchion, ToolCall, ToolError, Verdict, allow, ask

DATABASE = "postgres://orders:hunter2@db.internal/orders"  # what a crash must not tell

app = Stanchion("orders", instructions="Look an order up before you cancel it.", server_version="1.0")


@dataclass
class Order:
    """One order, as the model sees it."""

    id: str
    customer: str
    items: list[str]
    status: str = "open"


@dataclass
class Warehouse:
    """What goes on in the warehouse right now."""

    packing: int = 0


orders = {
    "A-17": Order("A-17", "Ada", ["lamp", "shade"]),
    "B-42": Order("B-42", "Brook", ["desk"], status="shipped"),
}
warehouse = Warehouse()


def find(order_id: str) -> Order:
    """Return an order, or tell the model which there are."""
    if order_id not in orders:
        raise ToolError(f"There is no order {order_id}. Known: {', '.join(orders)}.")
    return orders[order_id]


@app.tool(title="Look an order up", read_only=True)
async def lookup(order_id: str) -> Order:
    """Find an order by its number.

    Args:
        order_id: The number on the receipt, such as A-17.
    """
    return find(order_id)


@app.tool(title="Pack an order")
async def pack(order_id: str, ctx: Context, seconds: float = 0.25) -> str:
    """Pack an order item by item, and say how far it is."""
    steps = ["fetch a box", *(f"wrap the {item}" for item in find(order_id).items), "tape it shut"]
    warehouse.packing += 1
    try:
        for done, step in enumerate(steps, start=1):
            await ctx.progress(done, total=len(steps), message=step)
            await asyncio.sleep(seconds)
    finally:
        warehouse.packing -= 1
    return f"Order {order_id} is packed."


@app.tool(title="Look into the warehouse", read_only=True)
async def look_around() -> Warehouse:
    """Count the orders being packed."""
    return warehouse


@app.tool(title="Cancel an order", destructive=True)
async def cancel_order(order_id: str, reason: str = "") -> str:
    """Cancel an order; this cannot be undone."""
    find(order_id).status = "cancelled"
    return f"Order {order_id} is cancelled. {reason}".strip()


@app.tool(title="Export all orders", read_only=True)
async def export() -> str:
    """Export all orders; the database is never there."""
    raise ConnectionError(f"could not connect to {DATABASE}")


@app.authorizer
def rules(call: ToolCall) -> Verdict:
    """Decide every call: whatever destroys is asked about, the rest may run."""
    if call.tool.destructive:
        return ask(f"Cancel order {call.arguments.get('order_id')}?")
    return allow()


@app.resource("orders://{order_id}/receipt", title="A receipt", mime_type="text/plain")
async def receipt(order_id: str) -> str:
    """Print the receipt of an order."""
    order = find(order_id)
    return "\n".join([f"Receipt {order.id} for {order.customer}", *(f"- {item}" for item in order.items)])


@app.prompt(title="Write to the customer")
async def apology(order_id: str, tone: str = "warm") -> str:
    """Ask the model for a letter about a late order."""
    order = find(order_id)
    return f"Write a {tone} apology to {order.customer}: order {order.id} is late."


if __name__ == "__main__":
    app.run()
