#include "artel/data/text/byte_pair.h"
#include "artel/base/file.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::byte_pair {

// The vocabulary ends with its last brace; merges follow. Without them it is a tokenizer.json. A
// tokenizer that can be read restores any text.
void read(const Bytes& bytes) {
  static const TemporaryFolder folder;
  const std::string input(bytes.text());
  const size_t end = input.rfind('}') + 1;
  write_input(folder / "fuzz.json", input.substr(0, end));
  write_input(folder / "fuzz.txt", input.substr(end));
  const data::TokenizerPtr tokenizer =
      end == input.size() ? data::read_byte_pair(folder / "fuzz.json")
                          : data::read_byte_pair(folder / "fuzz.json", folder / "fuzz.txt");
  require(tokenizer->decode(tokenizer->encode(input)) == input, ErrorKind::internal,
          "a text changed when it was encoded and decoded");
}

std::vector<std::string> seeds() {
  const TemporaryFolder folder;
  data::byte_pair_tokenizer({{"t", "h"}, {"th", "e"}, {" ", "the"}, {"\xC3", "\xA9"}})
      ->save(folder.path());
  std::string vocabulary = read_file(folder / "vocab.json");
  vocabulary.resize(vocabulary.rfind('}') + 1);
  return {vocabulary + read_file(folder / "merges.txt"),
          R"({"model": {"type": "BPE", "vocab": )" + vocabulary +
              R"(, "merges": ["t h", ["th", "e"], "\u0120 the", "\u00c3 \u00a9"]}, )"
              R"("pre_tokenizer": {"type": "ByteLevel"}})"};
}

}  // namespace artel::fuzz::byte_pair
