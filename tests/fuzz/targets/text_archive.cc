#include "artel/data/text/text_archive.h"

#include "tests/fuzz/target.h"
#include "tests/support/gzip.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::text_archive {

// The inside of a compressed archive of texts, because random data never has the right outer
// checksum.
void read(const Bytes& bytes) {
  static const TemporaryFolder folder;
  const auto file = folder / "fuzz.tgz";
  write_input(file, gzip(std::string(bytes.text())));
  data::read_text_archive(file);
}

std::vector<std::string> seeds() {
  const std::string text = R"({"text": "My fellow citizens"})";
  std::string archive(512, '\0');
  archive.replace(0, 19, "package/data/a.json");
  archive.replace(124, 11, fmt::format("{:011o}", text.size()));
  archive[156] = '0';
  archive.replace(257, 5, "ustar");
  archive += text + std::string(512 - text.size() + 1024, '\0');
  return {archive};
}

}  // namespace artel::fuzz::text_archive
