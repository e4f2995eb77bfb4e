#include "artel/data/text/byte_pair.h"

#include <functional>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/data/text/vocabulary.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// How texts are cut before they are cut into words.
struct Cuts {
  std::set<std::string> marks = {std::string(kEndOfText)};  // single tokens wherever they occur
  bool single_digits = false;                               // each digit is a word
  bool operator==(const Cuts&) const = default;
};

class BytePairTokenizer : public Tokenizer {
 public:
  // `names` are printable; the vocabulary's file and the place of each merge are for messages.
  BytePairTokenizer(std::vector<std::string> names, std::vector<Merge> merges, Cuts cuts,
                    const std::string& vocabulary, const std::function<std::string(size_t)>& where)
      : names_(std::move(names)), merges_(std::move(merges)), cuts_(std::move(cuts)) {
    cuts_.marks.erase("");
    for (size_t i = 0; i < names_.size(); ++i) {
      const bool special = cuts_.marks.contains(names_[i]);
      bytes_.push_back(special ? names_[i] : from_printable(names_[i], vocabulary));
      if (special)
        marks_.push_back(static_cast<int32_t>(i));
      else
        require(numbers_.emplace(bytes_[i], static_cast<int32_t>(i)).second, ErrorKind::corrupt,
                "[{}] token '{}' occurs twice", vocabulary, names_[i]);
    }
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = numbers_.find(std::string(1, static_cast<char>(byte)));
      byte_numbers_[byte] = found == numbers_.end() ? kNoToken : found->second;
    }
    std::vector<bool> made(names_.size());
    for (size_t rank = 0; rank < merges_.size(); ++rank) {
      const auto& [left, right] = merges_[rank];
      const std::string place = where(rank);
      const int32_t result = number_of(left + right, place);
      made[result] = true;
      ranks_.emplace(key_of(number_of(left, place), number_of(right, place)),
                     Step{static_cast<int32_t>(rank), result});
    }
    for (size_t i = 0; i < names_.size(); ++i)
      require(
          made[i] || bytes_[i].size() == 1 || is_mark(names_[i]) || cuts_.marks.contains(names_[i]),
          ErrorKind::corrupt,
          "[{}] token '{}' of the vocabulary: no merge produces it; the file may be truncated",
          where(merges_.size()), names_[i]);
  }

  const std::vector<std::string>& names() const override { return names_; }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    std::unordered_map<std::string_view, std::vector<int32_t>> known;
    const auto append_words = [&](std::string_view part) {
      while (!part.empty()) {
        const std::string_view word = first_word(part);
        const auto [found, added] = known.try_emplace(word);
        if (added) found->second = encode_word(word);
        tokens.insert(tokens.end(), found->second.begin(), found->second.end());
        part.remove_prefix(word.size());
      }
    };
    NextMark next(*this, text);
    for (size_t at = 0; at < text.size();) {
      const auto [begin, mark] = next.from(at);
      for (std::string_view part = text.substr(at, begin - at); !part.empty();) {
        const std::string_view stretch = cuts_.single_digits ? first_without_numbers(part) : part;
        append_words(stretch);
        part.remove_prefix(stretch.size());
      }
      if (mark < 0) break;
      tokens.push_back(mark);
      at = begin + names_[mark].size();
    }
    return tokens;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens) text += bytes_[checked(token)];
    return text;
  }

  void save(const fs::path& folder) const override {
    if (cuts_ == Cuts())
      save_byte_pair(folder, names_, merges_);
    else
      save_published(folder);
  }

 private:
  // The marks of a text from left to right, each place looked for once.
  class NextMark {
   public:
    NextMark(const BytePairTokenizer& tokenizer, std::string_view text)
        : tokenizer_(tokenizer), text_(text) {
      for (const int32_t mark : tokenizer.marks_)
        places_.push_back(text.find(tokenizer.names_[mark]));
    }

    // The position and number of the next mark, or the end of the text and -1. If several marks
    // start at the same position, the longest one.
    std::pair<size_t, int32_t> from(size_t at) {
      size_t best = text_.size(), length = 0;
      int32_t number = -1;
      for (size_t i = 0; i < places_.size(); ++i) {
        const int32_t mark = tokenizer_.marks_[i];
        const std::string& name = tokenizer_.names_[mark];
        if (places_[i] < at) places_[i] = text_.find(name, at);
        if (places_[i] > best || (places_[i] == best && name.size() <= length)) continue;
        best = places_[i];
        length = name.size();
        number = mark;
      }
      return {best, number};
    }

   private:
    const BytePairTokenizer& tokenizer_;
    std::string_view text_;
    std::vector<size_t> places_;  // the next one of each mark
  };

  // As tokenizer.json, which can say how texts are cut.
  void save_published(const fs::path& folder) const {
    nlohmann::ordered_json vocabulary = nlohmann::ordered_json::object();
    for (size_t i = 0; i < names_.size(); ++i) vocabulary[names_[i]] = i;
    Json marks = Json::array(), merges = Json::array(), cuts = Json::array();
    for (const int32_t mark : marks_)
      marks.push_back({{"id", mark}, {"content", names_[mark]}, {"special", true}});
    for (const auto& [left, right] : merges_)
      merges.push_back(Json::array({to_printable(left), to_printable(right)}));
    if (cuts_.single_digits) cuts.push_back({{"type", "Digits"}, {"individual_digits", true}});
    cuts.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}});
    const nlohmann::ordered_json file = {
        {"version", "1.0"},
        {"added_tokens", marks},
        {"normalizer", nullptr},
        {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", cuts}}},
        {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}}}};
    fs::create_directories(folder);
    write_file_atomically(folder / "tokenizer.json", file.dump() + "\n");
  }

  static constexpr int32_t kNoToken = -1;

  struct Step {
    int32_t rank, result;
  };

  // Marks such as <|endoftext|> are not text and are never merged.
  static bool is_mark(std::string_view name) {
    return name.starts_with('<') && name.ends_with('>');
  }

  // Published vocabularies may lack bytes that never occurred in their text.
  int32_t token_of(unsigned char byte) const {
    require(byte_numbers_[byte] != kNoToken, ErrorKind::invalid_argument,
            "text: the byte 0x{:02x} has no token in this vocabulary; leave it out", byte);
    return byte_numbers_[byte];
  }

  int32_t number_of(const std::string& bytes, const std::string& place) const {
    const auto found = numbers_.find(bytes);
    require(found != numbers_.end(), ErrorKind::corrupt, "[{}] '{}' is not in the vocabulary",
            place, to_printable(bytes));
    return found->second;
  }

  // A pair of neighbours that can be merged: lowest rank first, then leftmost. It is outdated once
  // either of them has been merged otherwise.
  struct Candidate {
    Step step;
    size_t left, right;  // places
    int32_t left_token, right_token;
    bool operator<(const Candidate& other) const {  // what a heap gives last
      return std::tie(step.rank, left) > std::tie(other.step.rank, other.left);
    }
  };

  // Takes O(n log n) time, because a text without spaces is a single long word.
  std::vector<int32_t> encode_word(std::string_view word) const {
    constexpr int32_t kMerged = -1;  // into the token on its left
    const size_t size = word.size();
    std::vector<int32_t> tokens(size);
    std::vector<size_t> before(size), after(size);
    for (size_t i = 0; i < size; ++i) {
      tokens[i] = token_of(static_cast<unsigned char>(word[i]));
      before[i] = i - 1;
      after[i] = i + 1;
    }
    std::priority_queue<Candidate> candidates;
    const auto offer = [&](size_t left, size_t right) {
      if (left >= size || right >= size) return;
      const auto found = ranks_.find(key_of(tokens[left], tokens[right]));
      if (found != ranks_.end())
        candidates.push({found->second, left, right, tokens[left], tokens[right]});
    };
    for (size_t i = 0; i + 1 < size; ++i) offer(i, i + 1);
    while (!candidates.empty()) {
      const Candidate best = candidates.top();
      candidates.pop();
      if (tokens[best.left] != best.left_token || tokens[best.right] != best.right_token ||
          after[best.left] != best.right)
        continue;
      tokens[best.left] = best.step.result;
      tokens[best.right] = kMerged;
      after[best.left] = after[best.right];
      if (after[best.left] < size) before[after[best.left]] = best.left;
      offer(before[best.left], best.left);
      offer(best.left, after[best.left]);
    }
    std::erase(tokens, kMerged);
    return tokens;
  }

  std::vector<std::string> names_, bytes_;
  std::vector<Merge> merges_;
  std::unordered_map<std::string, int32_t> numbers_;  // by bytes
  std::array<int32_t, 256> byte_numbers_{};           // kNoToken where the vocabulary lacks one
  std::unordered_map<uint64_t, Step> ranks_;          // by both parts
  Cuts cuts_;
  std::vector<int32_t> marks_;  // those that the vocabulary has
};

std::vector<std::string> read_vocabulary(const fs::path& file) {
  try {
    return numbered_tokens(parse_json(read_file(file), file.string()), file.string());
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", file.string(), error.what());
  }
}

struct MergesFile {
  std::vector<Merge> merges;
  std::vector<std::string> places;  // file and line of each

  void add(const std::vector<std::string>& parts, const std::string& where) {
    require(parts.size() == 2 && !parts[0].empty() && !parts[1].empty(), ErrorKind::corrupt,
            "[{}] got '{}', expected two tokens separated by a space", where, join(parts, " "));
    merges.emplace_back(from_printable(parts[0], where), from_printable(parts[1], where));
    places.push_back(where);
  }
};

MergesFile read_merges(const fs::path& file) {
  MergesFile result;
  int64_t number = 0;
  for (const std::string& line : artel::split(read_file(file), '\n')) {
    ++number;
    if (line.empty() || line == "\r" || (number == 1 && line.starts_with("#version"))) continue;
    result.add(artel::split(trim(line), ' '), fmt::format("{}:{}", file.string(), number));
  }
  result.places.push_back(file.string());  // where further merges would stand
  return result;
}

// How texts are cut. Throws unless it is GPT-2's way, or SmolLM's.
Cuts cuts_of(const Json& json, const std::string& where) {
  const auto kind = [&](const char* part) {
    return json.contains(part) && json[part].is_object() ? json[part].value("type", "") : "";
  };
  Json cutters = Json::array();
  if (kind("pre_tokenizer") == "Sequence")
    cutters = json["pre_tokenizer"].at("pretokenizers");
  else if (json.contains("pre_tokenizer"))
    cutters.push_back(json["pre_tokenizer"]);
  const auto is_kind = [&](size_t i, const char* name) {
    return i < cutters.size() && cutters[i].is_object() && cutters[i].value("type", "") == name;
  };
  Cuts cuts;
  cuts.single_digits = is_kind(0, "Digits");
  const size_t last = cuts.single_digits ? 1 : 0;
  require(kind("model") == "BPE" && kind("normalizer").empty() && is_kind(last, "ByteLevel") &&
              cutters.size() == last + 1,
          ErrorKind::unsupported,
          "[{}] got a {} model with normalizer '{}' and pre_tokenizer '{}', expected GPT-2's: BPE, "
          "none and ByteLevel",
          where, kind("model"), kind("normalizer"), kind("pre_tokenizer"));
  require(!cutters[last].value("add_prefix_space", false) &&
              cutters[last].value("use_regex", true) &&
              (!cuts.single_digits || cutters[0].value("individual_digits", false)),
          ErrorKind::unsupported,
          "[{}] pre_tokenizer: got another way to cut texts into words than GPT-2's", where);
  for (const Json& added : json.value("added_tokens", Json::array()))
    cuts.marks.insert(added.at("content").get<std::string>());
  return cuts;
}

// The tokens of "vocab" and the marks that are only in "added_tokens".
std::vector<std::string> all_tokens(const Json& json, const std::string& where) {
  Json vocabulary = json.at("model").at("vocab");
  for (const Json& added : json.value("added_tokens", Json::array()))
    vocabulary.emplace(added.at("content").get<std::string>(), added.at("id"));
  return numbered_tokens(vocabulary, where);
}

// A merge is "left right" or, in newer files, ["left", "right"].
MergesFile merges_of(const Json& json, const std::string& where) {
  MergesFile result;
  for (const Json& merge : json.at("model").at("merges"))
    result.add(merge.is_array() ? merge.get<std::vector<std::string>>()
                                : artel::split(merge.get<std::string>(), ' '),
               fmt::format("{}: merge {}", where, result.merges.size() + 1));
  result.places.push_back(where);
  return result;
}

TokenizerPtr make_byte_pair(std::vector<std::string> names, MergesFile file,
                            const std::string& where, Cuts cuts = {}) {
  return std::make_shared<BytePairTokenizer>(std::move(names), std::move(file.merges),
                                             std::move(cuts), where,
                                             [&](size_t i) { return file.places[i]; });
}

}  // namespace

TokenizerPtr read_byte_pair(const fs::path& tokenizer) {
  const std::string where = tokenizer.string();
  try {
    const Json json = parse_json(read_file(tokenizer), where);
    Cuts cuts = cuts_of(json, where);
    return make_byte_pair(all_tokens(json, where), merges_of(json, where), where, std::move(cuts));
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", where, error.what());
  }
}

TokenizerPtr read_byte_pair(const Gguf& file) {
  const std::string kind = file.text("tokenizer.ggml.model");
  const std::string cut =
      file.has("tokenizer.ggml.pre") ? file.text("tokenizer.ggml.pre") : std::string("gpt-2");
  require(kind == "gpt2" && (cut == "gpt-2" || cut == "smollm"), ErrorKind::unsupported,
          "[{}] got a tokenizer of kind '{}', which cuts texts as '{}' does, expected gpt2 and "
          "gpt-2 or smollm",
          file.name, kind, cut);
  const std::vector<std::string>& names = file.texts("tokenizer.ggml.tokens");
  const std::vector<double>& kinds = file.numbers("tokenizer.ggml.token_type");
  require(kinds.size() == names.size(), ErrorKind::corrupt,
          "[{}] tokenizer.ggml.token_type: got {} entries for {} tokens", file.name, kinds.size(),
          names.size());
  constexpr double kControl = 3, kUserDefined = 4;
  Cuts cuts = {.marks = {}, .single_digits = cut == "smollm"};
  for (size_t i = 0; i < names.size(); ++i)
    if (kinds[i] == kControl || kinds[i] == kUserDefined) cuts.marks.insert(names[i]);
  MergesFile merges;
  for (const std::string& merge : file.texts("tokenizer.ggml.merges"))
    merges.add(artel::split(merge, ' '),
               fmt::format("{}: merge {}", file.name, merges.merges.size() + 1));
  merges.places.push_back(file.name);
  return make_byte_pair(names, std::move(merges), file.name, std::move(cuts));
}

TokenizerPtr read_byte_pair(const fs::path& vocabulary, const fs::path& merges) {
  return make_byte_pair(read_vocabulary(vocabulary), read_merges(merges), vocabulary.string());
}

void save_byte_pair(const fs::path& folder, const std::vector<std::string>& names,
                    const std::vector<Merge>& merges) {
  fs::create_directories(folder);
  nlohmann::ordered_json vocabulary = nlohmann::ordered_json::object();
  for (size_t i = 0; i < names.size(); ++i) vocabulary[names[i]] = i;
  std::string lines = "#version: 0.2\n";
  for (const auto& [left, right] : merges)
    lines += to_printable(left) + ' ' + to_printable(right) + '\n';
  write_file_atomically(folder / "vocab.json", vocabulary.dump() + "\n");
  write_file_atomically(folder / "merges.txt", lines);
}

TokenizerPtr byte_pair_tokenizer(std::vector<Merge> merges) {
  std::vector<std::string> names;
  for (const unsigned char byte : printable_order())
    names.push_back(to_printable(std::string(1, static_cast<char>(byte))));
  for (const auto& [left, right] : merges) names.push_back(to_printable(left + right));
  names.emplace_back(kEndOfText);
  return std::make_shared<BytePairTokenizer>(std::move(names), std::move(merges), Cuts(),
                                             "vocabulary",
                                             [](size_t i) { return fmt::format("merge {}", i); });
}

}  // namespace artel::data
