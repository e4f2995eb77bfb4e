#include "artel/data/text/tokenizer.h"

#include <charconv>
#include <set>
#include <unordered_map>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/data/text/byte_pair.h"
#include "artel/data/text/unicode.h"
#include "artel/data/text/word_piece.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kTrainingBytes = size_t{16} << 20;  // of text, from which tokens are learnt

// Files of tokenizers: ours, two of GPT-2, two of BERT, one of either.
constexpr const char* kCharactersFile = "characters.json";
constexpr const char* kVocabulary = "vocab.json";
constexpr const char* kMerges = "merges.txt";
constexpr const char* kPieces = "vocab.txt";
constexpr const char* kPiecesConfig = "tokenizer_config.json";  // see read_word_piece
constexpr const char* kPublished = "tokenizer.json";

// Each token is one character.
class CharacterTokenizer : public Tokenizer {
 public:
  explicit CharacterTokenizer(std::vector<std::string> characters) : names_(std::move(characters)) {
    for (const std::string& name : names_) {
      require(!name.empty() && unicode::first_code_point(name).bytes == name.size(),
              ErrorKind::corrupt, "[characters] got '{}', expected one character per token", name);
      const bool added = numbers_.emplace(name, static_cast<int32_t>(numbers_.size())).second;
      require(added, ErrorKind::corrupt, "[characters] '{}' occurs twice", name);
    }
  }

  const std::vector<std::string>& names() const override { return names_; }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    tokens.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = unicode::first_code_point(text.substr(at)).bytes;
      const auto found = numbers_.find(std::string(text.substr(at, bytes)));
      require(found != numbers_.end(), ErrorKind::invalid_argument,
              "[tokenizer] offset {}: the character '{}' is not among the {} of the vocabulary", at,
              text.substr(at, bytes), names_.size());
      tokens.push_back(found->second);
      at += bytes;
    }
    return tokens;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens) text += names_[checked(token)];
    return text;
  }

  void save(const fs::path& folder) const override {
    fs::create_directories(folder);
    write_file_atomically(folder / kCharactersFile, Json(names_).dump() + "\n");
  }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> numbers_;
};

class ByteTokenizer : public Tokenizer {
 public:
  ByteTokenizer() {
    for (int byte = 0; byte < 256; ++byte)
      names_.push_back(to_printable(std::string(1, static_cast<char>(byte))));
  }

  const std::vector<std::string>& names() const override { return names_; }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens) text += static_cast<char>(checked(token));
    return text;
  }

  void save(const fs::path& folder) const override {  // vocab.json without merges
    save_byte_pair(folder, names_, {});
  }

 private:
  std::vector<std::string> names_;
};

std::vector<std::string> read_characters(const fs::path& file) {
  try {
    return parse_json(read_file(file), file.string()).get<std::vector<std::string>>();
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", file.string(), error.what());
  }
}

// The number in a name such as "bpe 4096".
int64_t size_in(const std::string& name) {
  int64_t size = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + name.find(' ') + 1, end, size);
  require(error == std::errc() && rest == end, ErrorKind::invalid_argument,
          "[tokenizer] got '{}', expected a number of tokens such as 'bpe 4096'", name);
  return size;
}

// True for a tokenizer.json with byte pair merges, like GPT-2's.
bool has_merges(const fs::path& file) {
  const Json json = parse_json(read_file(file), file.string());
  return json.is_object() && json.contains("model") && json["model"].is_object() &&
         json["model"].contains("merges");
}

}  // namespace

size_t Tokenizer::checked(int32_t token) const {
  require(token >= 0 && token < size(), ErrorKind::invalid_argument,
          "[tokenizer] token: got {}, expected 0 to {}", token, size() - 1);
  return static_cast<size_t>(token);
}

TokenizerPtr byte_tokenizer() { return std::make_shared<ByteTokenizer>(); }

TokenizerPtr character_tokenizer(std::vector<std::string> characters) {
  return std::make_shared<CharacterTokenizer>(std::move(characters));
}

TokenizerPtr character_tokenizer(std::string_view text) {
  std::set<uint32_t> codes;
  for (size_t at = 0; at < text.size();) {
    const auto [code, bytes] = unicode::first_code_point(text.substr(at));
    require(code != unicode::kInvalid, ErrorKind::corrupt,
            "[tokenizer] offset {}: not UTF-8; try the tokenizer 'byte'", at);
    codes.insert(code);
    at += bytes;
  }
  std::vector<std::string> characters;
  for (const uint32_t code : codes) unicode::append_utf8(characters.emplace_back(), code);
  return character_tokenizer(std::move(characters));
}

std::vector<fs::path> tokenizer_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const char* name :
       {kCharactersFile, kVocabulary, kMerges, kPieces, kPublished, kPiecesConfig})
    if (fs::exists(folder / name)) files.push_back(folder / name);
  return files;
}

TokenizerPtr open_tokenizer(const fs::path& path) {
  require(fs::exists(path), ErrorKind::not_found, "[{}] no such file or folder", path.string());
  if (path.extension() == ".gguf") return read_byte_pair(parse_gguf(map_file(path)));
  const fs::path folder = fs::is_directory(path) ? path : path.parent_path();
  const auto wanted = [&](const char* name) {
    return fs::is_directory(path) ? fs::exists(path / name) : path.filename() == name;
  };
  if (wanted(kCharactersFile))
    return character_tokenizer(read_characters(folder / kCharactersFile));
  if (wanted(kVocabulary) || wanted(kMerges))
    return read_byte_pair(folder / kVocabulary, folder / kMerges);
  if (wanted(kPublished))
    return has_merges(folder / kPublished) ? read_byte_pair(folder / kPublished)
                                           : read_word_piece(folder / kPublished);
  if (wanted(kPieces)) return read_word_piece(folder / kPieces);
  fail(ErrorKind::not_found, "[{}] no tokenizer: expected {}, {} with {}, {} or {}", path.string(),
       kCharactersFile, kVocabulary, kMerges, kPieces, kPublished);
}

TokenizerPtr make_tokenizer(const std::string& name, std::string_view text) {
  if (name == "character") return character_tokenizer(text);
  if (name == "byte") return byte_tokenizer();
  const std::string_view sample = text.substr(0, kTrainingBytes);
  if (name.starts_with("bpe ")) return byte_pair_tokenizer(train_byte_pair(sample, size_in(name)));
  if (name.starts_with("wordpiece ")) return train_word_piece(sample, size_in(name));
  require(fs::exists(name), ErrorKind::invalid_argument,
          "[tokenizer] got '{}', expected character, byte, 'bpe N', 'wordpiece N' or a path of its "
          "files",
          name);
  return open_tokenizer(name);
}

}  // namespace artel::data
