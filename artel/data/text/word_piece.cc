#include "artel/data/text/word_piece.h"

#include <unordered_map>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/data/text/unicode.h"
#include "artel/data/text/vocabulary.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kLongestWord = 100;  // characters

// BERT counts all ASCII symbols as punctuation, such as $ and ^.
bool is_mark(uint32_t code) {
  if (code < 0x80) return code > ' ' && code < 0x7F && !std::isalnum(static_cast<int>(code));
  return unicode::is_punctuation(code);
}

// BERT drops controls, such as a form feed, before it looks for white space; only these stay.
bool is_dropped(uint32_t code) {
  return unicode::is_control(code) && code != '\t' && code != '\n' && code != '\r';
}

std::vector<std::string> read_lines(const fs::path& file) {
  std::vector<std::string> tokens;
  for (const std::string& line : artel::split(read_file(file), '\n'))
    tokens.emplace_back(trim(line));
  while (!tokens.empty() && tokens.back().empty()) tokens.pop_back();
  return tokens;
}

std::shared_ptr<const WordPiece> read_json(const fs::path& file) {
  try {
    const Json json = parse_json(read_file(file), file.string());
    const Json& model = json.at("model");
    require(model.value("type", "WordPiece") == "WordPiece", ErrorKind::unsupported,
            "[{}] model.type: got \"{}\", expected \"WordPiece\"", file.string(),
            model.value("type", ""));
    std::vector<std::string> tokens = numbered_tokens(model.at("vocab"), file.string());
    const Json normalizer = json.value("normalizer", Json::object());
    const bool lower_case = normalizer.is_object() ? normalizer.value("lowercase", true) : true;
    return std::make_shared<WordPiece>(std::move(tokens), lower_case, file.string());
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", file.string(), error.what());
  }
}

// The case setting of tokenizer_config.json; without it, vocabularies are uncased.
bool is_lower_case(const fs::path& file) {
  if (!fs::exists(file)) return true;
  try {
    return parse_json(read_file(file), file.string()).value("do_lower_case", true);
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", file.string(), error.what());
  }
}

}  // namespace

std::vector<std::string> basic_words(std::string_view text, bool lower_case) {
  std::vector<std::string> words;
  bool inside = false;  // the current word continues
  while (!text.empty()) {
    const auto [code, bytes] = unicode::first_code_point(text);
    text.remove_prefix(bytes);
    if (code == 0xFFFD || code == unicode::kInvalid || is_dropped(code)) continue;
    if (unicode::is_space(code)) {
      inside = false;
      continue;
    }
    std::string folded;
    if (lower_case)
      unicode::append_folded(folded, code);
    else
      unicode::append_utf8(folded, code);
    // Tests the character without its accent: `≠` is `=` with one, so it is punctuation.
    const bool ideograph = unicode::is_chinese(code);
    for (std::string_view rest = folded; !rest.empty();) {
      const auto [letter, size] = unicode::first_code_point(rest);
      const bool alone = ideograph || is_mark(letter);
      if (alone || !inside) words.emplace_back();
      words.back() += rest.substr(0, size);
      inside = !alone;
      rest.remove_prefix(size);
    }
  }
  return words;
}

struct WordPiece::Numbers {
  std::unordered_map<std::string, int32_t> by_token;
};

WordPiece::WordPiece(std::vector<std::string> tokens, bool lower_case, const std::string& where)
    : names_(std::move(tokens)), where_(where), lower_case_(lower_case) {
  auto numbers = std::make_shared<Numbers>();
  for (size_t i = 0; i < names_.size(); ++i) {
    require(!names_[i].empty(), ErrorKind::corrupt, "[{}] token {} is empty", where, i);
    require(unicode::is_valid(names_[i]), ErrorKind::corrupt, "[{}] token {} is not UTF-8", where,
            i);
    require(numbers->by_token.emplace(names_[i], static_cast<int32_t>(i)).second,
            ErrorKind::corrupt, "[{}] token {}: '{}' occurs twice", where, i, names_[i]);
  }
  numbers_ = std::move(numbers);
  for (const char* needed : {"[UNK]", "[CLS]", "[SEP]", "[PAD]"}) number(needed);
}

int32_t WordPiece::number(std::string_view token) const {
  const auto found = numbers_->by_token.find(std::string(token));
  require(found != numbers_->by_token.end(), ErrorKind::corrupt,
          "[{}] the vocabulary has no token '{}'", where_, token);
  return found->second;
}

void WordPiece::encode_word(const std::string& word, std::vector<int32_t>& tokens) const {
  const size_t before = tokens.size();
  int characters = 0;
  for (const char byte : word) characters += (byte & 0xC0) != 0x80;
  for (size_t begin = 0; begin < word.size() && characters <= kLongestWord;) {
    size_t end = word.size();
    auto found = numbers_->by_token.end();
    for (; end > begin; --end) {
      if (end < word.size() && (word[end] & 0xC0) == 0x80) continue;  // inside a character
      found = numbers_->by_token.find((begin > 0 ? "##" : "") + word.substr(begin, end - begin));
      if (found != numbers_->by_token.end()) break;
    }
    if (end == begin) {
      tokens.resize(before);
      break;
    }
    tokens.push_back(found->second);
    begin = end;
  }
  if (tokens.size() == before) tokens.push_back(number("[UNK]"));
}

std::vector<int32_t> WordPiece::encode(std::string_view text) const {
  std::vector<int32_t> tokens;
  for (const std::string& word : basic_words(text, lower_case_)) encode_word(word, tokens);
  return tokens;
}

std::string WordPiece::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    const std::string& name = names_[checked(token)];
    if (name.starts_with("##"))
      text += name.substr(2);
    else
      text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

WordPiece::Sentence WordPiece::sentence(std::string_view text, std::string_view second,
                                        int64_t positions, bool pad) const {
  std::vector<int32_t> a = encode(text), b = encode(second);
  const int64_t marks = b.empty() ? 2 : 3;
  require(positions >= marks, ErrorKind::invalid_argument,
          "[sentence] positions: got {}, expected at least {}", positions, marks);
  const auto room = static_cast<size_t>(positions - marks);
  Sentence result;
  result.cut = a.size() + b.size() > room;
  while (a.size() + b.size() > room) (a.size() >= b.size() ? a : b).pop_back();
  const auto append = [&](const std::vector<int32_t>& part, int32_t type) {
    result.tokens.insert(result.tokens.end(), part.begin(), part.end());
    result.tokens.push_back(number("[SEP]"));
    result.types.resize(result.tokens.size(), type);
  };
  result.tokens.push_back(number("[CLS]"));
  append(a, 0);
  if (marks == 3) append(b, 1);
  if (pad) {
    result.tokens.resize(static_cast<size_t>(positions), number("[PAD]"));
    result.types.resize(static_cast<size_t>(positions), 0);
  }
  return result;
}

void WordPiece::save(const fs::path& folder) const {
  fs::create_directories(folder);
  Json vocabulary = Json::object();
  for (size_t i = 0; i < names_.size(); ++i) vocabulary[names_[i]] = i;
  const Json json = {{"model", {{"type", "WordPiece"}, {"vocab", vocabulary}}},
                     {"normalizer", {{"lowercase", lower_case_}}}};
  write_file_atomically(folder / "tokenizer.json", json.dump() + "\n");
}

std::shared_ptr<const WordPiece> read_word_piece(const fs::path& file) {
  if (file.extension() == ".json") return read_json(file);
  const bool lower_case = is_lower_case(file.parent_path() / "tokenizer_config.json");
  return std::make_shared<WordPiece>(read_lines(file), lower_case, file.string());
}

}  // namespace artel::data
