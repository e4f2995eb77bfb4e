// Tar archives, as used by npm packages and data sets.
#pragma once

#include <string>
#include <vector>

#include "artel/base/bytes.h"

namespace artel {

struct TarEntry {
  std::string name;
  Bytes content;  // a view of the archive
};

// The regular files of an uncompressed archive (see gunzip for compressed ones). Skips folders.
// Throws an Error of kind corrupt for a broken archive or a name that leads out of the folder, and
// of kind unsupported for links and devices.
std::vector<TarEntry> parse_tar(const Bytes& bytes);

}  // namespace artel
