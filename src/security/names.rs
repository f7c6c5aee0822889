//! Short names of principals.

use crate::Unauthorized;

/// How principals become short names (`hadoop.security.auth_to_local`).
#[derive(Clone, Debug, Default)]
pub struct NameRules {
    /// Principals of this realm lose it; those of another have no short name. `None`: all realms are alike.
    pub default_realm: Option<String>,
}

impl NameRules {
    /// The short name: a plain name is its own; `name/host@REALM` and `name@REALM` lose the rest if the realm is the default one.
    pub fn short<'a>(&self, principal: &'a str) -> Result<&'a str, Unauthorized> {
        if principal.is_empty() {
            return Err(Unauthorized("Null user".into()));
        }
        let Some(end) = principal.find(['/', '@']) else { return Ok(principal) };
        let realm = principal.rsplit_once('@').map(|(_, realm)| realm);
        match realm {
            _ if end == 0 => Err(Unauthorized(format!("Malformed Kerberos name: {principal}"))),
            Some(realm) if self.default_realm.as_deref().is_some_and(|own| own != realm) => {
                Err(Unauthorized(format!("No rules applied to {principal}")))
            }
            _ => Ok(&principal[..end]),
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
    }
}
