#include "artel/data/text/tokenizer.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::tokenizer_files {

// characters.json of a run. What it gives can be used on any text.
void read(const Bytes& bytes) {
  static const TemporaryFolder folder;
  const auto fuzz = folder / "fuzz";
  std::filesystem::create_directories(fuzz);
  write_input(fuzz / "characters.json", bytes.text());
  with_name(bytes, [&] {
    const data::TokenizerPtr tokenizer = data::open_tokenizer(fuzz);
    for (int32_t token = 0; token < tokenizer->size(); ++token) tokenizer->decode({&token, 1});
    tokenizer->decode(tokenizer->encode("abc"));
  });
}

std::vector<std::string> seeds() { return {R"(["\n", "a", "b", "c", "\u00e9"])"}; }

}  // namespace artel::fuzz::tokenizer_files
