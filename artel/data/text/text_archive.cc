#include "artel/data/text/text_archive.h"

#include <algorithm>

#include "artel/base/compress.h"
#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/tar.h"

namespace artel::data {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<ArchivedText> read_text_archive(const fs::path& archive) {
  std::vector<ArchivedText> texts;
  for (const TarEntry& entry : parse_tar(map_or_gunzip(archive))) {
    if (!entry.name.ends_with(".json")) continue;
    try {
      const Json json =
          parse_json(entry.content.text(), fmt::format("{}: {}", archive.string(), entry.name));
      if (json.is_object() && json.contains("text"))
        texts.push_back({entry.name, json.at("text").get<std::string>()});
    } catch (const Json::exception& error) {
      fail(ErrorKind::corrupt, "[{}] {}: {}", archive.string(), entry.name, error.what());
    }
  }
  std::sort(texts.begin(), texts.end(),
            [](const ArchivedText& a, const ArchivedText& b) { return a.name < b.name; });
  return texts;
}

fs::path sotu_text(const fs::path& folder) {
  const fs::path file = folder / "sotu.txt";
  if (fs::exists(file)) return file;
  std::string all;
  for (const ArchivedText& text : read_text_archive(folder / kSotuArchive))
    all += text.text + "\n\n";
  write_file_atomically(file, all);
  return file;
}

LabelledTexts spam_mails(const fs::path& folder) {
  LabelledTexts mails{.class_names = {"ham", "spam"}};
  for (ArchivedText& mail : read_text_archive(folder / kSpamArchive)) {
    const size_t head = mail.text.find("\n\n");
    mails.texts.push_back(head == std::string::npos ? mail.text : mail.text.substr(head + 2));
    mails.labels.push_back(mail.name.find("/spam-") != std::string::npos ? 1 : 0);
  }
  return mails;
}

}  // namespace artel::data
