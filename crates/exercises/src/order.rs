//! Arbitrary bytes as an order of the dashboard to the manager.

use cli_proto::client::command_line;
use surface::cli::command;
use surface::operation::Order;

/// Decodes the bytes as a frame without its length.
///
/// # Panics
/// When an accepted order is another one after it was written again, is not a command of the CLI,
/// or would be several commands or another one in a line of the CLI.
pub fn order(bytes: &[u8]) {
    let Ok(order) = Order::decode(bytes) else { return };
    assert_eq!(Order::decode(&order.encode()[4..]).as_ref(), Ok(&order));
    let words = order.operation.command();
    let Some(verb) = words.first() else {
        assert!(!order.operation.is_change());
        return;
    };
    assert!(command(verb).is_some_and(|row| words.len() > row.arguments_min), "{words:?}");
    let line = command_line(&words);
    assert_eq!(line.matches('\n').count(), 1, "{line}");
    assert_eq!(cli_proto::command_line::split(line.trim_end_matches('\n').as_bytes()), Ok(words));
}
