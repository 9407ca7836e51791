//! The rules of loading, labels and discarding, compared with the replies of Varnish 7.1.1.

use super::*;

fn loaded(labels: &[&str]) -> Loaded {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    Loaded { program: Vec::new(), files: VclFiles::default(), sources: Vec::new(), labels }
}

/// Adds a VCL next to an active one.
pub(crate) fn add(table: &mut VclTable, name: &str) {
    table.add(name, VclState::Auto, loaded(&[]));
    table.add("old", VclState::Auto, loaded(&[]));
    table.set_active("old");
}

/// boot ← l1 ← v4, and v2, the active one.
fn example() -> VclTable {
    let mut table = VclTable::default();
    table.add("boot", VclState::Auto, loaded(&[]));
    table.add("v2", VclState::Auto, loaded(&[]));
    table.set_active("v2");
    table.set_label("l1", "boot");
    table.add("v4", VclState::Cold, loaded(&["l1"]));
    table
}

fn text<T: std::fmt::Debug>(result: Result<T, Response>) -> (u16, String) {
    let response = result.unwrap_err();
    (response.status, response.body)
}

#[test]
fn names_are_letters_first() {
    let table = example();
    assert_eq!(text(table.check_new("1a")), (106, "Illegal character in VCL name ('1')".to_owned()));
    assert_eq!(text(table.check_new("_x")), (106, "Illegal character in VCL name ('_')".to_owned()));
    assert_eq!(text(table.check_new("v.2")), (106, "Illegal character in VCL name ('.')".to_owned()));
    assert_eq!(text(table.check_new("a\n")), (106, "Illegal character in VCL name (0x0a)".to_owned()));
    assert_eq!(text(table.check_new("boot")), (106, "Already a VCL named boot".to_owned()));
    assert!(table.check_new("v-_2").is_ok());
}

#[test]
fn the_active_vcl_is_known_and_not_cold() {
    let table = example();
    assert_eq!(table.check_use("v2"), Ok(false));
    assert_eq!(table.check_use("l1"), Ok(true));
    assert_eq!(text(table.check_use("foo")), (106, "No VCL named foo known\n".to_owned()));
    assert_eq!(text(table.check_use("v4")), (300, "VCL 'v4' is cold - set to auto or warm first".to_owned()));
}

#[test]
fn vcls_in_use_cannot_be_set_cold() {
    let table = example();
    assert_eq!(text(table.check_state("l1", VclState::Cold)), (106, "Labels are always warm".to_owned()));
    assert_eq!(text(table.check_state("boot", VclState::Cold)), (300, "A labeled VCL cannot be set cold".to_owned()));
    assert_eq!(text(table.check_state("v2", VclState::Cold)), (300, "Cannot set the active VCL cold.".to_owned()));
    assert_eq!(table.check_state("v4", VclState::Auto), Ok(true));
    assert_eq!(table.check_state("boot", VclState::Auto), Ok(false));
    assert_eq!(text(state_word("foo")), (106, "State must be one of auto, cold or warm.".to_owned()));
}

#[test]
fn labels_point_at_vcls_and_never_in_circles() {
    let mut table = example();
    assert_eq!(text(table.check_label("l1", "l1")), (300, "VCL labels cannot point to labels".to_owned()));
    assert_eq!(text(table.check_label("v2", "boot")), (106, "v2 is not a label".to_owned()));
    assert_eq!(text(table.check_label("l2", "foo")), (106, "No VCL named foo known\n".to_owned()));
    assert_eq!(text(table.check_label("l3", "v4")), (300, "VCL 'v4' is cold - set to auto or warm first".to_owned()));
    table.set_state("v4", VclState::Auto);
    let expected = "Vcl v4 uses Label l1\nPointing label l1 at v4 would create a loop";
    assert_eq!(text(table.check_label("l1", "v4")), (106, expected.to_owned()));
    table.set_label("l2", "v4");
    table.add("v5", VclState::Auto, loaded(&["l2"]));
    let expected = "Vcl v5 uses Label l2\nLabel l2 points to vcl v4\nVcl v4 uses Label l1\nPointing label l1 at v5 would create a loop";
    assert_eq!(text(table.check_label("l1", "v5")), (106, expected.to_owned()));
    assert!(table.check_label("l1", "v2").is_ok());
}

#[test]
fn nothing_that_is_needed_is_discarded() {
    let mut table = example();
    let check = |table: &VclTable, patterns: &[&str]| {
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        table.check_discard(&patterns)
    };
    assert_eq!(text(check(&table, &["foo*"])), (106, "No VCL name matches foo*\n".to_owned()));
    assert_eq!(text(check(&table, &["*"])), (300, "Cannot discard active VCL program v2\n".to_owned()));
    assert_eq!(text(check(&table, &["boot"])), (300, "Cannot discard labeled VCL program boot:\n\tl1\n".to_owned()));
    let expected = "Cannot discard VCL label l1, other VCLs depend on it:\n\tv4\n";
    assert_eq!(text(check(&table, &["boot", "l1"])), (300, expected.to_owned()));
    let order = check(&table, &["boot", "l?", "v4"]).unwrap();
    assert_eq!(order, ["v4", "l1", "boot"]);
    order.iter().for_each(|name| table.remove(name));
    assert_eq!(table.entries().len(), 1);
}

#[test]
fn a_long_list_of_dependants_is_cut() {
    let mut table = VclTable::default();
    table.add("boot", VclState::Auto, loaded(&[]));
    (0..7).for_each(|number| table.set_label(&format!("l{number}"), "boot"));
    let (_, body) = text(table.check_discard(&["boot".to_owned()]));
    assert!(body.ends_with("\tl4\n\t[...]"), "{body}");
}

#[test]
fn a_canary_holds_its_vcl_and_its_label() {
    let mut table = example();
    let ends = ": vcl.promote or vcl.rollback ends it";
    assert_eq!(text(table.check_canary("none")), (106, "No VCL named none known\n".to_owned()));
    assert_eq!(text(table.check_canary("v2")), (300, "VCL 'v2' is active already".to_owned()));
    assert_eq!(text(table.check_canary("v4")), (300, "VCL 'v4' is cold - set to auto or warm first".to_owned()));
    assert_eq!(table.check_canary("l1"), Ok(()));
    table.add("v5", VclState::Auto, loaded(&[]));
    table.set_canary(Some("v5"));
    assert_eq!(text(table.check_canary("boot")), (300, format!("VCL 'v5' is a canary already{ends}")));
    assert_eq!(text(table.check_state("v5", VclState::Cold)), (300, format!("Cannot set a canary cold{ends}")));
    let all = text(table.check_discard(&["v5".into(), "v4".into()]));
    assert_eq!(all, (300, format!("Cannot discard the canary v5{ends}\n")));
    assert_eq!(table.check_label("l1", "v5"), Ok(()));
    table.set_canary(Some("l1"));
    assert_eq!(
        text(table.check_label("l1", "v5")),
        (300, format!("Cannot move the label l1 while a canary runs{ends}"))
    );
    assert_eq!(text(table.check_discard(&["boot".into()])).0, 300);
    table.set_canary(None);
    assert_eq!(table.check_discard(&["v5".into()]), Ok(vec!["v5".to_owned()]));
    table.set_label("live", "boot");
    table.set_active("live");
    assert_eq!(text(table.check_canary("boot")), (300, "VCL 'boot' is active already".to_owned()));
    assert_eq!(text(VclTable::default().check_canary("x")).0, 106);
}
