//! Loaded VCLs: vcl_init and vcl_fini, directors made by them, temperature, labels.

use crate::support::{World, always, run};
use engine::loaded_vcl::{LoadedVcl, Temperature, VclTable};
use engine::vcl_life;
use std::sync::Arc;
use surface::closed_set::VclState;

const BACKENDS: &str = "vcl 4.1; import directors; import std;
    backend a { .host = \"10.0.0.1\"; .port = \"80\"; }
    backend b { .host = \"10.0.0.2\"; .port = \"80\"; } ";

fn load(world: &World, name: &str, text: &str, state: VclState) -> Result<Arc<LoadedVcl>, String> {
    let source = vcl::SourceText { name: "<test>", text: text.as_bytes() };
    let options = vcl::CompileOptions { err_unref: false, ..Default::default() };
    let program = vcl::compile(&source, &options).unwrap_or_else(|error| panic!("{error}")).program;
    vcl_life::load(&world.engine, name, program, state, world.context.clock.now())
}

#[test]
fn directors_made_in_vcl_init_choose_backends() {
    run(|world| async move {
        let text = format!(
            "{BACKENDS} sub vcl_init {{ new d = directors.round_robin(); d.add_backend(a); d.add_backend(b); }}
             sub vcl_recv {{ set req.backend_hint = d.backend(); return (pass); }}"
        );
        world.load("two", &text);
        world.origin_at("10.0.0.1:80", always("", "a"));
        world.origin_at("10.0.0.2:80", always("", "b"));
        let mut answers = String::new();
        for _ in 0..4 {
            answers += &world.client().get("/", "").await.text();
        }
        assert!(answers == "abab" || answers == "baba", "{answers}\n{}", world.story());
    });
}

#[test]
fn failed_vcl_init_reports_its_reason_and_vcl_fini_has_run() {
    run(|world| async move {
        let text = format!(
            "{BACKENDS} sub vcl_init {{ return (fail(\"no licence\")); }} sub vcl_fini {{ std.log(\"over\"); }}"
        );
        let error = load(&world, "x", &text, VclState::Auto).map(|vcl| vcl.name.clone());
        assert_eq!(error, Err("VCL \"x\" Failed initialization\nMessage:\n\tno licence\n".to_owned()));
        world.expect_log("VCL_Log over");
    });
}

#[test]
fn vcl_fini_runs_once() {
    run(|world| async move {
        let text = format!("{BACKENDS} sub vcl_fini {{ std.log(\"over\"); }}");
        let vcl = load(&world, "x", &text, VclState::Auto).unwrap_or_else(|text| panic!("{text}"));
        let now = world.context.clock.now();
        vcl_life::finish(&world.engine, &vcl, now);
        vcl_life::finish(&world.engine, &vcl, now);
        assert_eq!(world.log().iter().filter(|line| line.contains("VCL_Log over")).count(), 1);
    });
}

#[test]
fn an_unused_vcl_goes_cold_and_use_warms_it() {
    run(|world| async move {
        let vcl = load(&world, "x", BACKENDS, VclState::Auto).unwrap_or_else(|text| panic!("{text}"));
        let now = world.context.clock.now();
        assert_eq!(vcl.temperature(0, now), Temperature::Warm);
        assert!(!vcl.cool_down(true, 600.0, now + 700.0), "it is in use");
        assert!(!vcl.cool_down(false, 600.0, now + 1299.0), "not for long enough");
        assert!(vcl.cool_down(false, 600.0, now + 1300.0));
        assert_eq!((vcl.temperature(0, now), vcl.temperature(1, now)), (Temperature::Cold, Temperature::Cooling));
        assert_eq!(vcl.warm_up(now + 1400.0), Ok(true));
        assert!(vcl.is_warm());
    });
}

#[test]
fn operator_state_decides_over_vcl_temperature() {
    run(|world| async move {
        let vcl = load(&world, "x", BACKENDS, VclState::Cold).unwrap_or_else(|text| panic!("{text}"));
        let now = world.context.clock.now();
        assert_eq!((vcl.temperature(0, now), vcl.temperature(1, now)), (Temperature::Cold, Temperature::Busy));
        assert_eq!(vcl.warm_up(now), Err("VCL 'x' is cold - set to auto or warm first".to_owned()));
        assert!(vcl.set_state(VclState::Warm, now), "warmth changes");
        assert!(!vcl.cool_down(false, 1.0, now + 1e6), "warm stays warm");
        assert!(vcl.set_state(VclState::Cold, now));
        assert!(!vcl.is_warm());
    });
}

#[test]
fn a_label_finds_its_vcl_and_counts_as_use() {
    run(|world| async move {
        let vcl = load(&world, "x", BACKENDS, VclState::Auto).unwrap_or_else(|text| panic!("{text}"));
        let mut table = VclTable::default();
        table.loaded.insert("x".into(), Arc::clone(&vcl));
        assert!(!table.is_in_use(&vcl));
        table.labels.insert("l".into(), "x".into());
        assert!(table.is_in_use(&vcl));
        assert_eq!(table.find("l").map(|found| found.name.as_str()), Some("x"));
        assert!(table.find("nothing").is_none());
        assert_eq!(vcl.busy(1 + table.held(&vcl)), 0, "ours and the table's");
        let request = Arc::clone(&vcl);
        assert_eq!(vcl.busy(1 + table.held(&vcl)), 1);
        drop(request);
    });
}
