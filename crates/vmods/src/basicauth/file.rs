//! A password file: a line `user:hash` for each user. Further fields and comments are ignored.

use super::hash::PasswordHash;
use crate::watched::Parsed;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use surface::limits::PASSWORD_FILE_BYTES_MAX;

/// Most remarks on one file.
const REMARKS_MAX: usize = 10;

/// The hashes of a file by user.
#[derive(Debug, Default)]
pub(crate) struct Passwords {
    hashes: HashMap<Vec<u8>, PasswordHash>,
    slowest: Option<PasswordHash>,
    remarks: Vec<String>,
}

impl Passwords {
    /// The hash of a user.
    pub(crate) fn hash(&self, user: &[u8]) -> Option<&PasswordHash> {
        self.hashes.get(user)
    }

    /// The hash that takes longest, if any is slow. It is computed for unknown users too, so that
    /// the time of a response does not tell whether there is such a user.
    pub(crate) fn slowest(&self) -> Option<&PasswordHash> {
        self.slowest.as_ref()
    }
}

impl Parsed for Passwords {
    const BYTES_MAX: u64 = PASSWORD_FILE_BYTES_MAX;
    /// A file that was removed must not let anybody in.
    const KEEPS_LAST: bool = false;

    fn parse(content: Vec<u8>) -> Result<Passwords, String> {
        let mut passwords = Passwords::default();
        for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            if let Err(why) = passwords.add(line)
                && passwords.remarks.len() < REMARKS_MAX
            {
                passwords.remarks.push(format!("line {}: {why}", index + 1));
            }
        }
        let slow = passwords.hashes.values().filter(|hash| hash.is_slow());
        passwords.slowest = slow.max_by_key(|hash| hash.cost()).cloned();
        Ok(passwords)
    }

    fn remarks(&self) -> &[String] {
        &self.remarks
    }
}

impl Passwords {
    fn add(&mut self, line: &[u8]) -> Result<(), String> {
        let mut fields = line.split(|byte| *byte == b':');
        let (Some(user), Some(hash)) = (fields.next().filter(|user| !user.is_empty()), fields.next()) else {
            return Err("has no user and hash with a colon between".to_owned());
        };
        let hash = PasswordHash::parse(&String::from_utf8_lossy(hash))?;
        match self.hashes.entry(user.to_vec()) {
            Entry::Occupied(_) => Err("the user is in an earlier line, which counts".to_owned()),
            Entry::Vacant(place) => {
                place.insert(hash);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_line_of_a_user_counts_and_faults_are_named_by_line() {
        let sha = "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=";
        let text = format!("# people\r\nann:{sha}\r\n\n bob:{sha}:Bob:x\nann:{sha}\neve:plain\nnobody\n:{sha}\n");
        let passwords = Passwords::parse(text.into_bytes()).unwrap();
        assert!(passwords.hash(b"ann").is_some() && passwords.hash(b"bob").is_some());
        assert!(passwords.hash(b"eve").is_none() && passwords.hash(b"").is_none());
        let lines: Vec<&str> = passwords.remarks().iter().filter_map(|remark| remark.split(':').next()).collect();
        assert_eq!(lines, ["line 5", "line 6", "line 7", "line 8"]);
        assert!(passwords.slowest().is_none());
    }

    #[test]
    fn a_file_of_faults_has_few_remarks() {
        let passwords = Passwords::parse(b"x\n".repeat(100_000)).unwrap();
        assert_eq!(passwords.remarks().len(), REMARKS_MAX);
    }
}
