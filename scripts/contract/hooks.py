"""What schemathesis cannot know of the shop from its contract."""

import re
import uuid

import schemathesis

CUSTOMERS_KEY = re.compile(r"[!#-~]{22,64}")
STAFFS_KEY = re.compile(r"[!#-~]{1,64}")


@schemathesis.hook
def before_call(context, case, kwargs):
    # A gateway would name who asks for a change, and whose orders are listed.
    operation = case.operation.definition.raw
    staff = "staff" in operation.get("tags", [])
    if staff or operation["operationId"] == "listOrders":
        case.headers["X-Subject"] = "ann"
    # Schemathesis repeats keys with other bodies, which is refused. Keys that break the contract stay.
    key = case.headers.get("Idempotency-Key")
    form = STAFFS_KEY if staff or operation["operationId"] == "cancelOrder" else CUSTOMERS_KEY
    if isinstance(key, str) and form.fullmatch(key):
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
