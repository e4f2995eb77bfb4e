// Tar archives, as used by npm and publishers of data sets.
#pragma once

#include <string>
#include <vector>

#include "artel/base/bytes.h"

namespace artel {

struct TarEntry {
  std::string name;
  Bytes content;  // a view of the archive
};

// The regular files of an archive (not compressed; see gunzip). Folders are skipped. Throws an
// Error of kind corrupt for a broken archive and for a name that is absolute or leads out of the
// folder, and of kind unsupported for links and devices.
std::vector<TarEntry> parse_tar(const Bytes& bytes);

}  // namespace artel
