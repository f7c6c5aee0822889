//! Short names of principals.

use crate::Unauthorized;

/// How principals become short names (`hadoop.security.auth_to_local`).
#[derive(Clone, Debug, Default)]
pub struct NameRules {
    /// Principals of this realm lose it; those of another have no short name. `None`: all realms are alike.
    pub default_realm: Option<String>,
}

impl NameRules {
    /// The short name: `name/host@REALM`, `name@REALM` and `name/host` lose all but the name if the realm is the default one; anything else
    /// without a realm is a plain name, which is its own.
    pub fn short<'a>(&self, principal: &'a str) -> Result<&'a str, Unauthorized> {
        if principal.is_empty() {
            return Err(Unauthorized("Null user".into()));
        }
        let (local, realm) = match principal.split_once('@') {
            Some((local, realm)) => (local, Some(realm)),
            None => (principal, None),
        };
        let (name, host) = match local.split_once('/') {
            Some((name, host)) => (name, Some(host)),
            None => (local, None),
        };
        let is_part = |part: &str| !part.is_empty() && !part.contains(['/', '@']);
        if !is_part(name) || host.is_some_and(|host| !is_part(host)) || realm.is_some_and(|realm| !is_part(realm)) {
            return match realm {
                Some(_) => Err(Unauthorized(format!("Malformed Kerberos name: {principal}"))),
                None => Ok(principal),
            };
        }
        match realm {
            Some(realm) if self.default_realm.as_deref().is_some_and(|own| own != realm) => {
                Err(Unauthorized(format!("No rules applied to {principal}")))
            }
            _ => Ok(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names() {
        let rules = NameRules { default_realm: Some("EXAMPLE.COM".into()) };
        for (principal, short) in
            [("alice", "alice"), ("alice@EXAMPLE.COM", "alice"), ("nn/host@EXAMPLE.COM", "nn"), ("é", "é")]
        {
            assert_eq!(rules.short(principal).unwrap(), short);
        }
        for refused in ["", "@EXAMPLE.COM", "alice@OTHER"] {
            assert!(rules.short(refused).is_err(), "{refused}");
        }
        // as Hadoop 3.5.0 shortens them where no realm is configured
        for (principal, short) in [("alice@R", "alice"), ("alice/h@R", "alice"), ("a/b", "a"), ("a b", "a b")] {
            assert_eq!(NameRules::default().short(principal).unwrap(), short);
        }
        for plain in ["/a", "a/", "a//b", "a/b/c", "/", "a/b/"] {
            assert_eq!(NameRules::default().short(plain).unwrap(), plain);
        }
        for malformed in ["a/b/c@R", "@R", "a@b@c", "a@", "a/@R", "/@R"] {
            let refused = NameRules::default().short(malformed).unwrap_err();
            assert_eq!(refused.0, format!("Malformed Kerberos name: {malformed}"));
        }
    }
}
