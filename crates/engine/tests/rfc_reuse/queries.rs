//! QUERY: requests with the query in the body.

use super::*;

async fn query(client: &mut Client, kind: &str, question: &str) -> Response {
    let length = question.len();
    client
        .send(format!(
            "QUERY /search HTTP/1.1\r\nHost: example.com\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{question}"
        ))
        .await;
    client.response().await
}

#[test]
fn same_question_gets_the_stored_answer_and_another_one_its_own() {
    run_rfc(async |world| {
        let asked = origin(&world, |number, request| {
            let question = String::from_utf8_lossy(&request.body).into_owned();
            ok("Cache-Control: max-age=10\r\n", format!("{number}: {question}"))
        });
        let mut client = world.client();
        assert_eq!(query(&mut client, "a/b", "one").await.text(), "1: one", "{}", world.story());
        assert_eq!(asked.borrow()[0].line(), "QUERY /search");
        assert_eq!(query(&mut client, "a/b", "one").await.text(), "1: one");
        assert_eq!(query(&mut client, "a/b", "two").await.text(), "2: two");
        assert_eq!(query(&mut client, "a/c", "one").await.text(), "3: one", "read otherwise, it is another question");
        assert_eq!(client.get("/search", "").await.text(), "4: ");
        assert_eq!(query(&mut client, "a/b", "two").await.text(), "2: two");
        wait(20).await;
        assert_eq!(query(&mut client, "a/b", "one").await.text(), "5: one");
    });
}

#[test]
fn question_that_is_long_or_of_unknown_length_is_passed() {
    run_rfc(async |world| {
        origin(&world, |number, request| {
            ok("Cache-Control: max-age=10\r\n", format!("{number}: {}", request.body.len()))
        });
        let long = "x".repeat(usize::try_from(surface::limits::QUERY_BYTES_MAX).unwrap() + 1);
        for number in 1..3 {
            let head = format!("QUERY / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", long.len());
            let response = world.client().post(head, long.clone().into_bytes()).await;
            assert_eq!(response.text(), format!("{number}: {}", long.len()));
        }
        expect_reason(&world, "pass-long-query");
        for number in 3..5 {
            let head = "QUERY / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
            let mut client = world.client();
            client.send(head).await;
            assert_eq!(client.response().await.text(), format!("{number}: 3"));
        }
        assert_eq!(world.engine.cache.object_count(), 0);
    });
}
