//! The operators that can be run inside the cluster's process, as a table.

use homeostat::{Kind, Manager};

use crate::failure::Failure;

/// An operator: its name on the command line, and how it joins a manager.
#[derive(Clone, Copy)]
pub(crate) struct Operator {
    pub(crate) name: &'static str,
    /// The lease that the same operator takes as a program of its own.
    pub(crate) lease: &'static str,
    pub(crate) kind: fn() -> Kind,
    pub(crate) join: fn(Manager) -> Manager,
}

pub(crate) const ALL: [Operator; 4] = [
    Operator {
        name: "at",
        lease: operator_at::OPERATOR,
        kind: Kind::of::<operator_at::At>,
        join: |manager| manager.with_crd::<operator_at::At>().with(operator_at::controller()),
    },
    Operator {
        name: "webapp",
        lease: operator_webapp::OPERATOR,
        kind: Kind::of::<operator_webapp::WebApp>,
        join: |manager| {
            manager.with_crd::<operator_webapp::WebApp>().with(operator_webapp::controller())
        },
    },
    Operator {
        name: "database",
        lease: operator_database::OPERATOR,
        kind: Kind::of::<operator_database::Database>,
        join: |manager| {
            manager.with_crd::<operator_database::Database>().with(operator_database::controller())
        },
    },
    Operator {
        name: "logical-database",
        lease: operator_logical_database::OPERATOR,
        kind: Kind::of::<operator_logical_database::LogicalDatabase>,
        join: |manager| {
            manager
                .with_crd::<operator_logical_database::LogicalDatabase>()
                .with(operator_logical_database::controller())
        },
    },
];

/// The operators of those names, in the order of the table. To name one twice is an error: it may
/// well be that another one was meant.
pub(crate) fn chosen(names: &[String]) -> Result<Vec<Operator>, Failure> {
    if let Some(name) = names.iter().find(|name| !ALL.iter().any(|one| one.name == **name)) {
        let known = ALL.map(|operator| operator.name).join(", ");
        return Err(match name.as_str() {
            "" => Failure::NamelessOperator { known },
            _ => Failure::UnknownOperator { name: name.clone(), known },
        });
    }
    let repeated = |(at, name): &(usize, &String)| names[..*at].contains(*name);
    if let Some((_, name)) = names.iter().enumerate().find(repeated) {
        return Err(Failure::RepeatedOperator { name: name.clone() });
    }
    Ok(ALL.into_iter().filter(|operator| names.iter().any(|name| name == operator.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_operator_is_refused_with_the_known_ones() {
        let error = chosen(&["web".to_owned()]).map(|_| ()).unwrap_err();
        let Failure::UnknownOperator { name, known } = error else { panic!("{error}") };
        assert_eq!(
            (name.as_str(), known.as_str()),
            ("web", "at, webapp, database, logical-database")
        );
    }

    #[test]
    fn operators_run_in_the_order_of_the_table_and_none_may_be_named_twice() {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let both = chosen(&names(&["webapp", "at"])).unwrap();
        let both: Vec<_> = both.iter().map(|operator| operator.name).collect();
        assert_eq!(both, ["at", "webapp"]);
        let error = chosen(&names(&["webapp", "at", "webapp"])).map(|_| ()).unwrap_err();
        assert!(matches!(error, Failure::RepeatedOperator { name } if name == "webapp"));
    }
}
