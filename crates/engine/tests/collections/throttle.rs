//! vsthrottle through VCL, under the virtual clock.

use super::*;

#[test]
fn requests_over_the_rate_are_denied_until_the_period_ends() {
    let vcl = r#"
        import vsthrottle;
        sub vcl_recv {
            set req.http.X-Left = vsthrottle.remaining(req.http.Key, 2, 10s);
            if (vsthrottle.is_denied(req.http.Key, 2, 10s)) { return (synth(429)); }
            return (synth(200, req.http.X-Left));
        }"#;
    told(vcl, async |world| {
        let ask = async |key: &str| world.client().get("/", &format!("Key: {key}\r\n")).await;
        let first = ask("a").await;
        assert!(first.head.starts_with("HTTP/1.1 200 2\r\n"), "{}", first.head);
        assert_eq!(ask("a").await.status(), 200);
        assert_eq!(ask("a").await.status(), 429);
        assert_eq!(ask("b").await.status(), 200, "another key has a bucket of its own");
        sleep(Duration::from_secs(6)).await;
        assert_eq!(ask("a").await.status(), 200);
        assert_eq!(ask("a").await.status(), 429);
        // Buckets belong to the process.
        world.load("next", vcl);
        assert_eq!(ask("a").await.status(), 429);
        assert_eq!(world.client().get("/", "").await.status(), 429, "no key is denied");
    });
}

#[test]
fn a_block_lasts_its_time_and_tokens_can_be_given_back() {
    let vcl = r#"
        import vsthrottle;
        sub vcl_recv {
            if (req.url == "/return") { vsthrottle.return_token("k", 1, 1s, 30s); }
            if (req.url == "/remove") { vsthrottle.remove_bucket("k", 1, 1s, 30s); }
            if (req.url == "/" && vsthrottle.is_denied("k", 1, 1s, 30s)) {
                return (synth(429, vsthrottle.blocked("k", 1, 1s, 30s)));
            }
            return (synth(200, vsthrottle.remaining("k", 1, 1s, 30s)));
        }"#;
    told(vcl, async |world| {
        let ask =
            async |url: &str| world.client().get(url, "").await.head.lines().next().unwrap_or_default().to_owned();
        assert_eq!(ask("/").await, "HTTP/1.1 200 0");
        assert_eq!(ask("/return").await, "HTTP/1.1 200 1");
        assert_eq!(ask("/").await, "HTTP/1.1 200 0");
        assert_eq!(ask("/").await, "HTTP/1.1 429 30.000");
        sleep(Duration::from_secs(10)).await;
        assert_eq!(ask("/").await, "HTTP/1.1 429 20.000", "a token is back, the block goes on");
        assert_eq!(ask("/remove").await, "HTTP/1.1 200 1");
        assert_eq!(ask("/").await, "HTTP/1.1 200 0");
    });
}
