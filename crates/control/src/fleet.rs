//! The fleet as the worker knows it: orders that it carries out, and conditions under which it
//! serves. Nodes, messages and files of a fleet are the manager's, and its agent's.

use serde::{Deserialize, Serialize};

/// An order to remove objects. Fetches that are under way when it comes are hit too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FleetOrder {
    /// Nothing: for the mark of the cache.
    Nothing,
    /// All objects that match; one text, as the CLI takes it.
    Ban(String),
    /// All objects that match; the words of an expression.
    BanWords(Vec<String>),
    /// All objects under a key.
    Key {
        /// The digest that vcl_hash yields.
        digest: [u8; 32],
        /// They become stale instead.
        is_soft: bool,
    },
    /// All objects with one of the tags.
    Tags {
        /// The tags.
        tags: Vec<String>,
        /// They become stale instead.
        is_soft: bool,
    },
    /// All objects.
    Everything,
}

/// Conditions under which the worker serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FleetServing {
    /// As without a fleet.
    Cache,
    /// Nothing older than `fleet_lost_ttl` without asking the origin.
    StaleLimit,
    /// Nothing from the cache: all requests are passed.
    Pass,
}

impl FleetServing {
    /// Its word in the log.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            FleetServing::Cache => "cache",
            FleetServing::StaleLimit => "stale-limit",
            FleetServing::Pass => "pass",
        }
    }
}

/// The reply to orders, as a text of one line per order below the mark of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Identity of the ban journal.
    pub identity: u64,
    /// Number of its newest entry.
    pub sequence: u64,
    /// For each order the number of objects, or the reason why it cannot be carried out.
    pub orders: Vec<Result<u64, String>>,
}

impl Applied {
    /// The text of a reply.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{} {}\n", self.identity, self.sequence);
        for order in &self.orders {
            match order {
                Ok(objects) => text += &format!("{objects}\n"),
                Err(why) => text += &format!("! {}\n", why.replace(['\n', '\r'], " ")),
            }
        }
        text
    }

    /// The reply with this text; `None` if it is another text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Applied> {
        let mut lines = text.lines();
        let (identity, sequence) = lines.next()?.split_once(' ')?;
        let orders = lines.map(|line| match line.strip_prefix("! ") {
            Some(why) => Some(Err(why.to_owned())),
            None => line.parse().ok().map(Ok),
        });
        Some(Applied {
            identity: identity.parse().ok()?,
            sequence: sequence.parse().ok()?,
            orders: orders.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_comes_back_from_its_text() {
        let orders = vec![Ok(0), Err("no\nsuch field".to_owned()), Ok(u64::MAX)];
        let applied = Applied { identity: u64::MAX, sequence: 7, orders };
        let back = Applied::parse(&applied.text()).unwrap();
        assert_eq!(back.orders[1], Err("no such field".to_owned()));
        assert_eq!((back.identity, back.sequence, back.orders.len()), (u64::MAX, 7, 3));
        for other in ["", "1", "a b", "1 2\nx", "1 2\n-1"] {
            assert_eq!(Applied::parse(other), None, "{other}");
        }
    }
}
