//! Cookies of statistics and advertising: only scripts in the browser read them, so a request for
//! a page can do without. `copal why` strips these and no others.
//!
//! A name is on the list only if its product documents it, and no server needs it. Names of
//! sessions, baskets, settings and consents are not on it.

/// Cookies of one product.
#[derive(Debug)]
pub struct Tracker {
    /// Product or company.
    pub product: &'static str,
    /// Names; `*` represents any number of characters.
    pub names: &'static [&'static str],
}

const fn tracker(product: &'static str, names: &'static [&'static str]) -> Tracker {
    Tracker { product, names }
}

/// The known products.
pub static TRACKERS: &[Tracker] = &[
    tracker("Google Analytics", &["_ga", "_ga_*", "_gid", "_gat", "_gat_*", "_dc_gtm_*", "__utm*"]),
    tracker("Google Ads", &["_gcl_*", "_gac_*", "__gads", "__gpi", "__eoi"]),
    tracker("Meta", &["_fbp", "_fbc"]),
    tracker("Matomo", &["_pk_id*", "_pk_ses*", "_pk_ref*", "_pk_cvar*", "_pk_hsr*"]),
    tracker("Microsoft", &["_clck", "_clsk", "_uetsid", "_uetvid"]),
    tracker("Hotjar", &["_hj*"]),
    tracker("HubSpot", &["__hstc", "__hssc", "__hssrc", "hubspotutk"]),
    tracker("TikTok", &["_ttp", "_tt_enable_cookie"]),
    tracker("LinkedIn", &["li_fat_id"]),
    tracker("Pinterest", &["_pin_unauth"]),
    tracker("Reddit", &["_rdt_uuid"]),
    tracker("Snap", &["_scid", "_scid_r"]),
    tracker("Yandex", &["_ym_*"]),
    tracker("Adobe", &["s_cc", "s_sq", "s_vi", "AMCV_*", "AMCVS_*"]),
    tracker("Marketo", &["_mkto_trk"]),
    tracker("Mixpanel", &["mp_*_mixpanel"]),
    tracker("Amplitude", &["amplitude_id*"]),
    tracker("Segment", &["ajs_anonymous_id"]),
    tracker("Snowplow", &["_sp_id.*", "_sp_ses.*"]),
    tracker("Quantcast", &["__qca"]),
    tracker("VWO", &["_vwo_*", "_vis_opt_*"]),
];

/// The product and the entry on the list for the name of a cookie.
#[must_use]
pub fn known(cookie: &str) -> Option<(&'static Tracker, &'static str)> {
    TRACKERS.iter().find_map(|tracker| Some((tracker, *tracker.names.iter().find(|name| is_named(name, cookie))?)))
}

/// True if `name`, with at most one `*`, represents this cookie.
fn is_named(name: &str, cookie: &str) -> bool {
    match name.split_once('*') {
        None => name == cookie,
        Some((start, end)) => {
            cookie.len() >= start.len() + end.len() && cookie.starts_with(start) && cookie.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trackers_are_known_and_cookies_of_an_application_are_not() {
        for (cookie, product) in [
            ("_ga", "Google Analytics"),
            ("_ga_AB12CD34", "Google Analytics"),
            ("__utmz", "Google Analytics"),
            ("_fbp", "Meta"),
            ("_pk_id.1.fed1", "Matomo"),
            ("mp_0123_mixpanel", "Mixpanel"),
        ] {
            assert_eq!(known(cookie).map(|found| found.0.product), Some(product), "{cookie}");
        }
        for cookie in [
            "PHPSESSID",
            "sessionid",
            "wordpress_logged_in_1",
            "woocommerce_cart_hash",
            "cookie_consent",
            "_gallery",
            "csrftoken",
            "id",
            "_session_id",
            "mp_mixpanel",
            "",
            "_GA",
            "JSESSIONID",
            "connect.sid",
            "laravel_session",
        ] {
            assert!(known(cookie).is_none(), "{cookie}");
        }
    }

    #[test]
    fn names_are_unique_and_have_at_most_one_star() {
        let names: Vec<&str> = TRACKERS.iter().flat_map(|tracker| tracker.names.iter().copied()).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(name.matches('*').count() <= 1 && name.len() >= 3, "{name}");
            assert!(!names[..index].contains(name), "{name}");
        }
    }
}
