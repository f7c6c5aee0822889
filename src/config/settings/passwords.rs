//! Passwords that are not written in the site files.

use super::reader::Reader;
use crate::config::ConfigError;
use security::jceks;

/// Password of a store of passwords where none is set.
const DEFAULT: &str = "none";

/// A password from the stores that `hadoop.security.credential.provider.path` names; nothing where none of them has it. Stores that do not lie in local
/// files are passed over with a warning.
pub(super) fn credential(reader: &Reader<'_>, alias: &str) -> Result<Option<String>, ConfigError> {
    const STORES: &str = "hadoop.security.credential.provider.path";
    let stores = reader.strings(STORES)?;
    let file = reader.non_empty("hadoop.security.credstore.java-keystore-provider.password-file")?;
    if alias.is_empty() || stores.is_empty() {
        return Ok(None);
    }
    let of_store = match (std::env::var("HADOOP_CREDSTORE_PASSWORD"), file) {
        (Ok(password), _) => password,
        (_, Some(file)) => of_file(&file)?,
        _ => DEFAULT.to_owned(),
    };
    for store in stores {
        match jceks::password(&store, &of_store, alias) {
            Ok(None) => {}
            Ok(Some(password)) => return Ok(Some(password)),
            Err(problem) => reader.warn(format!("{STORES}: {problem}")),
        }
    }
    Ok(None)
}

/// The content of a file, trimmed.
pub(super) fn of_file(path: &str) -> Result<String, ConfigError> {
    let read = std::fs::read_to_string(path);
    let wrong = |error| ConfigError::Contradiction(format!("Could not read password file: {path}: {error}"));
    read.map(|text| text.trim().to_owned()).map_err(wrong)
}

/// The password for a key: from a store under an alias or the key's name, as it is `given`, or from a file; empty if there is none.
pub(super) fn found(
    reader: &Reader<'_>,
    key: &str,
    alias: &str,
    given: &str,
    file: &str,
) -> Result<String, ConfigError> {
    let in_clear = reader.boolean("hadoop.security.credential.clear-text-fallback")?;
    for alias in [alias, key] {
        if let Some(password) = credential(reader, alias)?.filter(|password| !password.is_empty()) {
            return Ok(password);
        }
    }
    if in_clear && !given.is_empty() {
        return Ok(given.to_owned());
    }
    if file.is_empty() { Ok(String::new()) } else { of_file(file) }
}
