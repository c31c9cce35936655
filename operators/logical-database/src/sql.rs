//! The statements sent to the server. Pure text; names and values are quoted here and only here.

/// A name as SQL wants it: `"a""b"`.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A value as SQL wants it: `'a''b'`. `standard_conforming_strings` is on in every supported server.
pub(crate) fn literal(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// Makes and marks a role: several statements in one message are one transaction.
pub(crate) fn create_role(role: &str, password: &str, mark: &str) -> String {
    let (create, mark) = (identifier(role), mark_role(role, mark));
    format!("CREATE ROLE {create} LOGIN PASSWORD {}; {mark}", literal(password))
}

/// Repairs and marks a role.
pub(crate) fn alter_role(role: &str, password: &str, mark: &str) -> String {
    let (alter, mark) = (identifier(role), mark_role(role, mark));
    format!("ALTER ROLE {alter} LOGIN PASSWORD {}; {mark}", literal(password))
}

pub(crate) fn mark_role(role: &str, mark: &str) -> String {
    format!("COMMENT ON ROLE {} IS {}", identifier(role), literal(mark))
}

pub(crate) fn create_database(database: &str, owner: &str) -> String {
    format!("CREATE DATABASE {} OWNER {}", identifier(database), identifier(owner))
}

pub(crate) fn own_database(database: &str, owner: &str) -> String {
    format!("ALTER DATABASE {} OWNER TO {}", identifier(database), identifier(owner))
}

pub(crate) fn mark_database(database: &str, mark: &str) -> String {
    format!("COMMENT ON DATABASE {} IS {}", identifier(database), literal(mark))
}

/// `FORCE` ends the sessions that would keep it.
pub(crate) fn drop_database(database: &str) -> String {
    format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", identifier(database))
}

pub(crate) fn drop_role(role: &str) -> String {
    format!("DROP ROLE IF EXISTS {}", identifier(role))
}

/// The same for a role that was granted something, or made something in another database that we
/// are connected to: that becomes ours, so that nothing is lost with the role.
pub(crate) fn release_and_drop_role(role: &str) -> String {
    let role = identifier(role);
    format!("REASSIGN OWNED BY {role} TO CURRENT_USER; DROP OWNED BY {role}; DROP ROLE {role}")
}

/// The owner's name and the mark of a database.
pub(crate) const FIND_DATABASE: &str = "SELECT pg_catalog.pg_get_userbyid(d.datdba)::text, \
     pg_catalog.shobj_description(d.oid, 'pg_database') \
     FROM pg_catalog.pg_database d WHERE d.datname = $1";

/// The mark of a role.
pub(crate) const FIND_ROLE: &str = "SELECT pg_catalog.shobj_description(r.oid, 'pg_authid') \
     FROM pg_catalog.pg_roles r WHERE r.rolname = $1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_cannot_end_a_name_or_a_value() {
        assert_eq!(identifier("a\"; DROP TABLE x; --"), "\"a\"\"; DROP TABLE x; --\"");
        assert_eq!(literal("it's"), "'it''s'");
    }
}
