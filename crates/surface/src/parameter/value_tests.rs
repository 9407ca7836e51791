//! Values that `param.set` accepts and refuses, compared with the replies of Varnish 7.1.1.

use super::*;

fn storages() -> Vec<String> {
    vec!["s0".to_owned(), "Transient".to_owned()]
}

/// Sets a value on default parameters and checks the value then shown.
#[track_caller]
fn shows(name: &str, value: &str, expected: &str) {
    let mut parameters = Parameters::default();
    set(&mut parameters, &Parameters::default(), name, value, &storages())
        .unwrap_or_else(|error| panic!("{name} {value}: {}", error.text()));
    assert_eq!(format(&parameters, row(name).unwrap()), expected, "{name} {value}");
}

/// Sets a value on default parameters and checks the refusal.
#[track_caller]
fn refuses(name: &str, value: &str, expected: &str) {
    let mut parameters = Parameters::default();
    let error = set(&mut parameters, &Parameters::default(), name, value, &storages()).unwrap_err();
    assert_eq!(error.text(), format!("{expected}\n(attempting to set param '{name}' to '{value}')"));
    assert_eq!(parameters, Parameters::default(), "a refused value must change nothing");
}

#[test]
fn every_default_is_shown_as_in_its_row() {
    let parameters = Parameters::default();
    for row in PARAMETERS {
        assert_eq!(format(&parameters, row), row.default, "{}", row.name);
        assert_eq!(format(&parameters, row), row.default);
    }
}

#[test]
fn every_default_can_be_set_again_and_bounds_can_be_read() {
    let mut parameters = Parameters::default();
    for row in PARAMETERS.iter().filter(|row| is_available(row)) {
        if row.default != "none" || row.kind != ParameterKind::LogMask {
            set(&mut parameters, &Parameters::default(), row.name, row.default, &storages())
                .unwrap_or_else(|error| panic!("{}", error.text()));
        }
        assert_eq!(minimum(&parameters, row).is_some(), row.min.is_some(), "{}", row.name);
        assert_eq!(maximum(&parameters, row).is_some(), row.max.is_some(), "{}", row.name);
    }
    assert_eq!(parameters, Parameters::default());
}

#[test]
fn seconds_are_finite_numbers_in_bounds() {
    shows("default_ttl", "1.5", "1.500");
    shows("default_ttl", "90s", "90.000");
    shows("default_ttl", "1 s", "1.000");
    for unit in ["sec", " secs", " second", "seconds"] {
        shows("default_ttl", &format!("60{unit}"), "60.000");
    }
    for (value, shown) in [("1m", "60.000"), ("1.5h", "5400.000"), ("5ms", "0.005"), ("2 d", "172800.000")] {
        shows("default_ttl", value, shown);
    }
    for value in ["10k", "1min"] {
        refuses("default_ttl", value, &format!("Invalid number ({value}): known units are ms, s, m, h, d, w and y\n"));
    }
    shows("default_ttl", ".5", "0.500");
    shows("default_ttl", "1.9999", "1.999");
    shows("default_ttl", "123456789012", "123456789012.000");
    refuses("default_ttl", "1234567890123", "Too many digits (1234567890123)\n");
    refuses("default_ttl", "-1", "Must be greater or equal to 0.000\n");
    for value in ["inf", "nan", "", "x", "1e3", "1 2", "+5", "- 1", ".", "1..2"] {
        refuses("default_ttl", value, &format!("Invalid number ({value})\n"));
    }
    shows("acceptor_sleep_decay", "0.12345678", "0.123");
    refuses("acceptor_sleep_decay", "2", "Must be less than or equal to 1\n");
    refuses("acceptor_sleep_decay", "-1", "Must be greater or equal to 0\n");
}

#[test]
fn switches_take_the_usual_words() {
    for value in ["off", "NO", "False", "Disable"] {
        shows("auto_restart", value, "off");
    }
    shows("http_gzip_support", "Enable", "on");
    refuses("auto_restart", "Maybe", "use \"on\" or \"off\"\n");
}

#[test]
fn whole_numbers_are_read_in_three_bases() {
    shows("gzip_level", "0x5", "5");
    shows("ping_interval", "010", "8");
    shows("listen_depth", " +5", "5");
    shows("max_restarts", "unlimited", "unlimited");
    shows("pcre2_match_limit", "99999999999999999999", "unlimited");
    refuses("ping_interval", "08", "Not a number (08)\n");
    refuses("gzip_level", "1.5", "Not a number (1.5)\n");
    refuses("gzip_level", "10", "Must be no more than 9\n");
    refuses("gzip_level", "-1", "Must be no more than 9\n");
    refuses("http_max_hdr", "31", "Must be at least 32\n");
    refuses("pcre2_match_limit", "-5", "Not a number (-5)\n");
    shows("pcre2_match_limit", "-1", "unlimited");
}

#[test]
fn sizes_have_units() {
    shows("vsl_space", "2M", "2M");
    shows("vsl_space", "1.5MB", "1.50M");
    shows("vsl_space", "1048577", "1048577b");
    shows("fetch_maxchunksize", "256m", "0.25G");
    shows("workspace_session", "768", "0.75k");
    let hint = "  Try something like '80k' or '120M'\n";
    refuses("vsl_space", "-1", &format!("Could not convert to bytes.\nInvalid number\n{hint}"));
    let unit = "Unknown BYTES unit of measurement ([KMGTP][B])";
    refuses("vsl_space", "2Mx", &format!("Could not convert to bytes.\n{unit}\n{hint}"));
    refuses("vsl_space", "1", "Must be at least 1M\n");
    refuses("vsl_space", "5G", "Must be no more than 4G\n\n");
    refuses("fetch_chunksize", "1E", &format!("Could not convert to bytes.\n{unit}\n{hint}"));
    for value in [".5", "5.", "1.M", "999999999999999P"] {
        refuses("fetch_chunksize", value, &format!("Could not convert to bytes.\nInvalid number\n{hint}"));
    }
    for value in ["1.0001k", "1234567890123456", "1234567890123.5M"] {
        refuses("fetch_chunksize", value, &format!("Could not convert to bytes.\nToo many digits\n{hint}"));
    }
    shows("vsl_space", "1.333M", "1397751b");
    shows("vsl_space", "2097152.0", "2M");
    refuses("vsl_space", "5000000.5", &format!("Could not convert to bytes.\nFractional BYTES not allowed\n{hint}"));
}

#[test]
fn parameters_bound_each_other() {
    refuses("thread_pool_min", "6000", "Must be no more than 5000 (thread_pool_max)\n");
    refuses("thread_pool_max", "50", "Must be at least 100 (thread_pool_min)\n");
    refuses("thread_pool_reserve", "96", "Must be no more than 95 (95% of thread_pool_min)\n");
    refuses("vsl_buffer", "100", "Must be at least 267\n");
    refuses("vsl_reclen", "20k", "Must be no more than 16372\n\n");
    let mut parameters = Parameters::default();
    set(&mut parameters, &Parameters::default(), "thread_pool_max", "200", &[]).unwrap();
    assert!(set(&mut parameters, &Parameters::default(), "thread_pool_min", "201", &[]).is_err());
    set(&mut parameters, &Parameters::default(), "thread_pool_min", "200", &[]).unwrap();
    set(&mut parameters, &Parameters::default(), "thread_pool_reserve", "190", &[]).unwrap();
    set(&mut parameters, &Parameters::default(), "thread_pool_max", "6000", &[]).unwrap();
    set(&mut parameters, &Parameters::default(), "thread_pool_min", "5500", &[]).unwrap();
    let error = reset(&mut parameters, &Parameters::default(), "thread_pool_max").unwrap_err();
    assert!(error.text().starts_with("Must be at least 5500 (thread_pool_min)\n"));
    assert_eq!(parameters.thread_pool_max, 6000);
}

#[test]
fn bits_of_the_compiler_are_the_parameters_of_their_names() {
    let defaults = Parameters::default();
    let mut parameters = Parameters::default();
    let mut change = |name: &str, value: &str| {
        set(&mut parameters, &defaults, name, value, &storages()).unwrap();
        ["vcc_feature", "vcc_err_unref", "vcc_unsafe_path"].map(|name| format(&parameters, row(name).unwrap()))
    };
    assert_eq!(change("vcc_feature", "-err_unref"), ["+unsafe_path", "off", "on"]);
    assert_eq!(change("vcc_unsafe_path", "off"), ["none", "off", "off"]);
    assert_eq!(change("vcc_feature", "+err_unref,+allow_inline_c"), ["+err_unref,+allow_inline_c", "on", "off"]);
    assert_eq!(change("vcc_feature", "default"), ["+err_unref,+unsafe_path", "on", "on"]);
    set(&mut parameters, &defaults, "vcc_feature", "none", &storages()).unwrap();
    assert!(!parameters.vcc_err_unref && !parameters.vcc_unsafe_path);
    reset(&mut parameters, &defaults, "vcc_err_unref").unwrap();
    assert_eq!(parameters.vcc_feature, compiler::ERR_UNREF);
    reset(&mut parameters, &defaults, "vcc_feature").unwrap();
    assert_eq!(parameters, defaults);
    refuses("vcc_feature", "+nonsense", "Unknown vcc_feature bit (+nonsense)\n");
}

#[test]
fn bits_are_added_and_taken() {
    shows("debug", "+syncvsl,-workspace", "+syncvsl");
    shows("debug", "+LCK +req_state", "+req_state,+lck");
    shows("feature", "-validate_headers", "none");
    shows("feature", "+http2", "+http2,+validate_headers");
    shows("feature", "none", "none");
    shows("feature", "all", "all");
    shows("feature", "none,+http2", "+http2");
    shows("debug", "all", "all");
    refuses("debug", "+foo", "Unknown debug bit (+foo)\n");
    refuses("debug", "foo", "Missing '+' or '-' (foo)\n");
    refuses("debug", "default", "Missing '+' or '-' (default)\n");
    refuses("debug", "\"x", "Cannot parse: Missing '\"'\n");
    refuses("debug", "+lck,", "Missing '+' or '-' ()\n");
    refuses("debug", "\"1,2\"", "Missing '+' or '-' (1,2)\n");
    shows("debug", "+lck , +lurker", "+lurker,+lck");
    refuses("feature", "+syncvsl", "Unknown feature bit (+syncvsl)\n");
    refuses("experimental", "+foo", "Unknown experimental bit (+foo)\n");
}

#[test]
fn the_log_mask_names_what_is_hidden() {
    let default = row("vsl_mask").unwrap().default;
    shows("vsl_mask", "+Debug", default.strip_prefix("-Debug,").unwrap());
    shows("vsl_mask", "-vcl_log", &default.replace(",-VfpAcct", ",-VCL_Log,-VfpAcct"));
    shows("vsl_mask", "default", default);
    shows("vsl_mask", &default.replace('-', "+"), "(all enabled)");
    refuses("vsl_mask", "+foo", "Unknown VSL tag (+foo)\n");
    shows("vsl_mask", "all", "(all enabled)");
    shows("vsl_mask", "none", "none");
    shows("vsl_mask", "all,-VCL_Log", "-VCL_Log");
}

#[test]
fn pools_and_storages_are_checked() {
    shows("pool_req", "20,200,5", "20,200,5");
    shows("pool_req", "0x14,200,5,9", "20,200,5");
    shows("pool_req", "20, 200 5", "20,200,5");
    refuses("pool_req", "10,100,-1", "Must be greater or equal to 0\n");
    refuses("pool_req", "1,,3", "Not a number ()\n");
    refuses("pool_req", "10,100", "Three fields required: min_pool, max_pool and max_age\n");
    refuses("pool_req", "x,1,2", "Not a number (x)\n");
    refuses("pool_req", "200,100,10", "min_pool cannot be larger than max_pool\n");
    refuses("pool_req", "10,100,2000000", "Must be less than or equal to 1000000\n");
    shows("h2_rxbuf_storage", "s0", "s0");
    refuses("h2_rxbuf_storage", "foo", "unknown storage backend 'foo'");
}

#[test]
fn unknown_parameter_names_are_refused() {
    let mut parameters = Parameters::default();
    let error = set(&mut parameters, &Parameters::default(), "foo", "1", &[]).unwrap_err();
    assert_eq!((error.status(), error.text().as_str()), (106, "Unknown parameter \"foo\"."));
    let error = set(&mut parameters, &Parameters::default(), "accept_filter", "on", &[]).unwrap_err();
    assert_eq!(error.status(), 300);
    set(&mut parameters, &Parameters::default(), "deprecated_dummy", "+lurker", &[]).unwrap();
    assert_eq!(parameters.debug, super::super::debug::LURKER);
}
