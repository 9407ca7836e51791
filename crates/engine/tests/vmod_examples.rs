//! The examples of VMODs that the reference page shows, as printed.

use crate::support::{always, run};
use surface::vmod::examples::{EXAMPLES, ExampleRow};

/// The VCL with the example's files in a folder of the test.
fn with_files(example: &ExampleRow, folder: &std::path::Path) -> String {
    let mut vcl = example.vcl.to_owned();
    for (path, content) in example.files {
        let placed = folder.join(path.rsplit('/').next().unwrap());
        std::fs::write(&placed, content).unwrap();
        vcl = vcl.replace(path, placed.to_str().unwrap());
    }
    vcl
}

#[test]
fn examples_of_the_reference_page_do_what_it_says() {
    for (index, example) in EXAMPLES.iter().enumerate() {
        run(async |world| {
            let folder = tempfile::tempdir().unwrap();
            world.load("example", &with_files(example, folder.path()));
            world.origin(always("Cache-Control: max-age=60\r\n", "hello, hello, hello"));
            let headers: String = example.request.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let response = world.client().get("/", &headers).await;
            let what = format!("example {index} ({}):\n{}", example.vmod, response.head);
            assert_eq!(response.status(), example.status, "{what}");
            for (name, value) in example.response {
                assert_eq!(response.header(&name.to_ascii_lowercase()), Some(*value), "{name} of {what}");
            }
        });
    }
}

#[test]
fn basicauth_lets_nobody_else_in_and_sees_a_replaced_file() {
    run(async |world| {
        let example = EXAMPLES.iter().find(|row| row.vmod == "basicauth").unwrap();
        let folder = tempfile::tempdir().unwrap();
        world.load("example", &with_files(example, folder.path()));
        world.origin(always("Cache-Control: max-age=60\r\n", ""));
        let status = async |headers: &str| world.client().get("/", headers).await.status();
        let ann = "Authorization: Basic YW5uOnNlY3JldA==\r\n";
        assert_eq!(status(ann).await, 200);
        // No header, a wrong password, an unknown user, an empty password.
        for other in
            ["", "Basic YW5uOnNlY3JldDE=", "Basic ZXZlOnNlY3JldA==", "Basic YW5uOg==", "Bearer YW5uOnNlY3JldA=="]
        {
            let response = world.client().get("/", &format!("Authorization: {other}\r\n")).await;
            assert_eq!((response.status(), response.header("www-authenticate").is_some()), (401, true), "{other}");
        }
        let file = folder.path().join(".htpasswd");
        std::fs::write(folder.path().join("new"), "bob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n").unwrap();
        std::fs::rename(folder.path().join("new"), &file).unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!((status(ann).await, status("Authorization: Basic Ym9iOnNlY3JldA==\r\n").await), (401, 200));
        std::fs::remove_file(&file).unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(status("Authorization: Basic Ym9iOnNlY3JldA==\r\n").await, 401);
        world.expect_log("No such file or directory");
    });
}
