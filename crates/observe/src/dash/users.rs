//! The file of users: `<name>:<bcrypt hash>[:view|operate]` a line, as `htpasswd -B` writes them.

use super::session::Role;
use std::io::Read as _;
use std::path::Path;
use surface::limits::DASH_USERS_BYTES_MAX;

/// The user of a login with a token of the CLI. No name in the file of users is this one.
pub(crate) const CLI_USER: &str = "cli";
/// Cost of a hash beyond which a login would take minutes.
const COST_MAX: u32 = 15;

/// All users.
#[derive(Clone, Default, Debug)]
pub(crate) struct Users(Vec<(String, String, Role)>);

impl Users {
    /// Reads a file.
    ///
    /// # Errors
    /// The message for the operator. It never has a part of a hash.
    pub fn read(path: &Path) -> Result<Users, String> {
        let mut text = String::new();
        let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
        file.take(DASH_USERS_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
        if text.len() as u64 > DASH_USERS_BYTES_MAX {
            return Err(format!("it is larger than {DASH_USERS_BYTES_MAX} bytes"));
        }
        Users::parse(&text)
    }

    fn parse(text: &str) -> Result<Users, String> {
        let mut users = Vec::<(String, String, Role)>::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let failed = |why: &str| format!("line {}: {why}", number + 1);
            let mut parts = line.split(':');
            let (name, hash) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let role = match (parts.next(), parts.next()) {
                (None | Some(""), _) => Role::Operate,
                (Some("operate"), None) => Role::Operate,
                (Some("view"), None) => Role::View,
                _ => return Err(failed("the role is neither view nor operate")),
            };
            if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
                return Err(failed("the name is empty, long or has control characters"));
            }
            if name == CLI_USER {
                return Err(failed("cli is the name of those who log in with a token of the CLI"));
            }
            if users.iter().any(|user| user.0 == name) {
                return Err(failed("the name occurs twice"));
            }
            let Ok(parts) = hash.parse::<bcrypt::HashParts>() else {
                return Err(failed("the password is not a bcrypt hash (htpasswd -B)"));
            };
            if parts.get_cost() > COST_MAX {
                return Err(failed("the cost of the hash is too high"));
            }
            users.push((name.to_owned(), hash.to_owned(), role));
        }
        if users.is_empty() { Err("there is no user in it".to_owned()) } else { Ok(Users(users)) }
    }

    /// True if no password is accepted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The role of a user, if there is one of that name.
    pub fn role(&self, name: &str) -> Option<Role> {
        self.0.iter().find(|user| user.0 == name).map(|user| user.2)
    }

    /// The role of a user with this password. It takes the time of a hash also for an unknown name.
    pub fn check(&self, name: &str, password: &str) -> Option<Role> {
        let found = self.0.iter().find(|user| user.0 == name);
        // An unknown name costs the hash of a known one.
        let hash = found.or(self.0.first()).map_or("", |user| user.1.as_str());
        let is_right = bcrypt::verify(password, hash).unwrap_or(false);
        found.filter(|_| is_right).map(|user| user.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_give_the_role_of_their_line() {
        let hash = bcrypt::hash("s3cret: ü", 4).unwrap();
        let users = Users::parse(&format!("# users\nanna:{hash}\n\neve:{hash}:view\nbob:{hash}:operate\n")).unwrap();
        let role = |name: &str| users.check(name, "s3cret: ü");
        assert_eq!(
            [role("anna"), role("eve"), role("bob"), role("x"), role("")].map(|role| role.map(Role::word)),
            [Some("operate"), Some("view"), Some("operate"), None, None]
        );
        assert_eq!(users.check("anna", "wrong"), None);
        assert_eq!(users.check("anna", &"x".repeat(100_000)), None);
        assert!(Users::default().check("anna", "").is_none());
    }

    #[test]
    fn hashes_of_htpasswd_are_accepted() {
        // htpasswd -nbB -C 5 anna secret, which writes $2y$.
        let hash = bcrypt::hash("secret", 5).unwrap().replacen("$2b$", "$2y$", 1);
        assert!(Users::parse(&format!("anna:{hash}")).unwrap().check("anna", "secret").is_some());
    }

    #[test]
    fn wrong_files_are_refused_without_a_word_of_the_hash() {
        let hash = bcrypt::hash("x", 4).unwrap();
        for (text, why) in [
            (String::new(), "no user"),
            ("anna".to_owned(), "line 1: the password is not"),
            ("anna:plaintext".to_owned(), "line 1: the password is not"),
            (format!("a:{hash}\na:{hash}"), "line 2: the name occurs twice"),
            (format!("a:{hash}:root"), "line 1: the role"),
            (format!(":{hash}"), "line 1: the name"),
            (format!("a:{}", hash.replacen("$04$", "$31$", 1)), "line 1: the cost"),
        ] {
            let said = Users::parse(&text).unwrap_err();
            assert!(said.starts_with(why) || said.contains(why), "{said}");
            assert!(!said.contains("plaintext") && !said.contains(&hash[7..]), "{said}");
        }
    }
}
