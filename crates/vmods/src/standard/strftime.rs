//! std: `std.strftime()`, which formats a UTC time like the C library in its C locale.

use crate::arguments::Arguments;
use semantics::calendar::{self, Zone};
use vcl_run::value::{Scratch, Value};

/// `std.strftime()`
pub(crate) fn strftime(arguments: Arguments<'_>, scratch: &mut Scratch) -> Value {
    let format = arguments.text(1);
    if !format.is_set() {
        return Value::Text(format);
    }
    let text = calendar::strftime(arguments.real(0), Zone::UTC, scratch.get(format), scratch.left_bytes());
    Value::Text(scratch.put(&text))
}
