//! Names in tokens and in manifests.

use syscap_format::dimension;

/// The template's id, and that of the tool where nothing is set.
pub const HTTP_REQUEST: &str = "http_request";
/// The id of `net.egress`.
pub const NET_EGRESS: &str = "net.egress";

/// The dimension of a grant that names hosts.
pub const HOST_DIMENSION: &str = dimension::HOST.name;
/// The dimension of a grant that names ports other than 443 for `https` and 80 for `http`.
pub const PORT_DIMENSION: &str = dimension::PORT.name;
/// The dimension of a grant that names blocks of addresses: those that URLs may name, and those
/// that are not of the Internet at large and that names may lead to.
pub const ADDRESS_DIMENSION: &str = dimension::ADDRESS.name;
/// The dimension of a grant that names `http`, which anybody on the way can read.
pub const SCHEME_DIMENSION: &str = dimension::SCHEME.name;
/// The dimension of a grant that names paths of URLs, below the root `url`: for tools that are set
/// `by_path`. Policies see the path of every request under this name.
pub const URL_PATH_DIMENSION: &str = "url_path";
/// The root of all paths of URLs, as policies and tokens name them: `url/api/v2`.
pub const URL_ROOT: &str = "url";
/// The dimension of a grant that names routes.
pub const ROUTE_DIMENSION: &str = dimension::ROUTE.name;
/// The dimension of a grant that names purposes.
pub const PURPOSE_DIMENSION: &str = dimension::PURPOSE.name;
