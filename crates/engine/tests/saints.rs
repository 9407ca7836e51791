//! Saint mode (saintmode), through VCL: an object that one backend answered badly is fetched from
//! another one.

use crate::support::{always, run, serve_each};
use std::time::Duration;
use tokio::time::sleep;

#[test]
fn a_retry_goes_to_another_backend_until_the_list_forgets() {
    run(async |world| {
        world.load(
            "two",
            "vcl 4.1; import saintmode; import directors;
             backend a { .host = \"10.0.0.1\"; .port = \"80\"; }
             backend b { .host = \"10.0.0.2\"; .port = \"80\"; }
             sub vcl_init {
                new sa = saintmode.saintmode(a, 2);
                new sb = saintmode.saintmode(b, 2);
                new f = directors.fallback();
                f.add_backend(sa.backend());
                f.add_backend(sb.backend());
             }
             sub vcl_recv { return (pass); }
             sub vcl_backend_fetch { set bereq.backend = f.backend(); }
             sub vcl_backend_response {
                if (beresp.http.bad) { saintmode.blacklist(10s); return (retry); }
                set beresp.http.from = beresp.backend;
             }
             sub vcl_deliver { set resp.http.count = sa.blacklist_count(); } ",
        );
        world.origin_at(
            "10.0.0.1:80",
            serve_each(|request| {
                let bad = if request.head.contains("/bad") { "Bad: 1\r\n" } else { "" };
                format!("HTTP/1.1 200 OK\r\n{bad}Content-Length: 0\r\n\r\n").into_bytes()
            }),
        );
        world.origin_at("10.0.0.2:80", always("", ""));
        let mut client = world.client();
        for (url, from, count) in [("/bad", "b", "1"), ("/good", "a", "1"), ("/bad2", "b", "2"), ("/good", "b", "2")] {
            let answer = client.get(url, "").await;
            assert_eq!((answer.header("from"), answer.header("count")), (Some(from), Some(count)), "{url}");
        }
        world.expect_log("VCL_Log saintmode: object put on blacklist for backend a for 10.00 seconds");
        world.expect_log("VCL_Log saintmode: unhealthy: object blacklisted for backend a");
        world.expect_log("VCL_Log saintmode: unhealthy: hit threshold for backend a");
        sleep(Duration::from_secs(11)).await;
        let mut client = world.client();
        assert_eq!(client.get("/good", "").await.header("from"), Some("a"));
    });
}
