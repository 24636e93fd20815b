//! Which product answers, told by what it says of itself and by the names of its hosts.

use bson::Document;

use crate::facts::Product;

/// Endings of host names that belong to one product
/// (<https://github.com/mongodb-js/devtools-shared>, `mongodb-build-info`).
const HOSTS: [(&str, Product); 4] = [
    (".docdb.amazonaws.com", Product::DocumentDb),
    (".docdb-elastic.amazonaws.com", Product::DocumentDb),
    (".mongocluster.cosmos.azure.com", Product::DocumentDbEngine),
    (".mongo.cosmos.azure.com", Product::CosmosDb),
];

/// The product behind these hosts, separated by commas, which gives these answers.
pub(super) fn recognise(
    hosts: &str,
    hello: &Document,
    build: &Document,
    has_proxy: bool,
) -> Product {
    if build.contains_key("ferretdb") || build.contains_key("ferretdbVersion") {
        return Product::FerretDb;
    }
    let internal = hello.get_document("internal");
    let engine = ["documentdb_versions", "cosmos_versions"];
    if internal.is_ok_and(|internal| engine.iter().any(|field| internal.contains_key(field))) {
        return Product::DocumentDbEngine;
    }
    // Cosmos DB gives the names of its own types away.
    if build.contains_key("_t") || hello.contains_key("_t") {
        return Product::CosmosDb;
    }
    let me = hello.get_str("me").unwrap_or_default();
    let names = hosts.split(',').chain([me]).map(without_port);
    for name in names {
        if let Some((_, product)) = HOSTS.iter().find(|(ending, _)| name.ends_with(ending)) {
            return *product;
        }
    }
    if has_proxy { Product::AtlasProxy } else { Product::MongoDb }
}

fn without_port(host: &str) -> String {
    host.split(':').next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn products_are_told_by_their_answers_and_names() {
        let hello = doc! { "isWritablePrimary": true, "maxWireVersion": 21 };
        let build = doc! { "version": "7.0.5", "modules": [] };
        let engine = doc! { "internal": { "documentdb_versions": ["0.117.0"] }, "msg": "isdbgrid" };
        let member = doc! { "me": "c-1.x.eu-west-1.docdb.amazonaws.com:27017" };
        let ferret = doc! { "version": "7.0.77", "ferretdb": { "version": "v2.0.0" } };
        let cosmos = doc! { "_t": "BuildInfoResponse", "version": "4.2.0" };
        for (hosts, hello, build, has_proxy, expected) in [
            ("h:1,i:2", &hello, &build, false, Product::MongoDb),
            ("c.x.mongodb.net:27017", &hello, &build, true, Product::AtlasProxy),
            ("h", &hello, &ferret, false, Product::FerretDb),
            ("h", &engine, &build, false, Product::DocumentDbEngine),
            ("h", &hello, &cosmos, false, Product::CosmosDb),
            ("a.mongo.cosmos.azure.com:10255", &hello, &build, false, Product::CosmosDb),
            ("A.Mongocluster.Cosmos.Azure.com", &hello, &build, false, Product::DocumentDbEngine),
            ("c.x.eu-west-1.docdb.amazonaws.com", &hello, &build, false, Product::DocumentDb),
        ] {
            let found = recognise(hosts, hello, build, has_proxy);
            assert_eq!(found, expected, "{hosts}");
        }
        assert_eq!(recognise("h", &member, &build, false), Product::DocumentDb);
    }
}
