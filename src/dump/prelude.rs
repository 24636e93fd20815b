//! What a dump says of the server and the tool it came from.

use serde::Deserialize;

use crate::facts::ServerVersion;

/// What a `prelude.json` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prelude {
    /// The version of the server; the tool writes `unknown` where it could not tell.
    pub server_version: Option<ServerVersion>,
    /// The version of the tool, in its own words.
    pub tool_version: Option<String>,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Written {
    server_version: String,
    tool_version: Option<String>,
}

impl Prelude {
    /// Reads the text of the file; the error says what is wrong with it.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let written: Written = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let server_version = match written.server_version.as_str() {
            "unknown" => None,
            text => {
                let version = ServerVersion::parse(text)
                    .ok_or_else(|| format!("{text:?} is no version of a server"))?;
                Some(version)
            }
        };
        Ok(Self { server_version, tool_version: written.tool_version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let prelude = Prelude::parse(br#"{"ServerVersion":"6.0.5","ToolVersion":"100.9"}"#);
        let expected = Prelude {
            server_version: Some(ServerVersion::new(6, 0, 5)),
            tool_version: Some("100.9".into()),
        };
        assert_eq!(prelude, Ok(expected));
        assert_eq!(Prelude::parse(br#"{"ServerVersion":"unknown"}"#), Ok(Prelude::default()));
    }

    #[test]
    fn what_it_cannot_say_is_refused() {
        let refused = |json: &str| Prelude::parse(json.as_bytes()).expect_err(json);
        assert_eq!(refused(r#"{"ServerVersion":"six"}"#), "\"six\" is no version of a server");
        assert!(refused("{}").contains("ServerVersion"));
        assert!(refused("{").contains("line 1 column 1"));
    }
}
