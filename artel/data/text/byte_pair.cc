#include "artel/data/text/byte_pair.h"

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/text.h"
#include "artel/data/text/vocabulary.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

class BytePairTokenizer : public Tokenizer {
 public:
  // `names` are printable; the file of the vocabulary is for messages, as is where merge i stands.
  BytePairTokenizer(std::vector<std::string> names, std::vector<Merge> merges,
                    const std::string& vocabulary, const std::function<std::string(size_t)>& where)
      : names_(std::move(names)), merges_(std::move(merges)) {
    for (size_t i = 0; i < names_.size(); ++i) {
      const bool special = names_[i] == kEndOfText;
      bytes_.push_back(special ? names_[i] : from_printable(names_[i], vocabulary));
      if (special)
        end_of_text_ = static_cast<int32_t>(i);
      else
        require(numbers_.emplace(bytes_[i], static_cast<int32_t>(i)).second, ErrorKind::corrupt,
                "[{}] token '{}' is there twice", vocabulary, names_[i]);
    }
    for (int byte = 0; byte < 256; ++byte) {
      const std::string text(1, static_cast<char>(byte));
      byte_numbers_[byte] = number_of(text, vocabulary);
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
      require(made[i] || bytes_[i].size() == 1 || is_mark(names_[i]), ErrorKind::corrupt,
              "[{}] token '{}' of the vocabulary: no merge makes it; the file may be truncated",
              where(merges_.size()), names_[i]);
  }

  const std::vector<std::string>& names() const override { return names_; }

  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    std::unordered_map<std::string_view, std::vector<int32_t>> known;
    while (!text.empty()) {
      const size_t end = end_of_text_ < 0 ? text.npos : text.find(kEndOfText);
      for (std::string_view part = text.substr(0, end); !part.empty();) {
        const std::string_view word = first_word(part);
        const auto [found, added] = known.try_emplace(word);
        if (added) found->second = encode_word(word);
        tokens.insert(tokens.end(), found->second.begin(), found->second.end());
        part.remove_prefix(word.size());
      }
      if (end == text.npos) break;
      tokens.push_back(end_of_text_);
      text.remove_prefix(end + kEndOfText.size());
    }
    return tokens;
  }

  std::string decode(std::span<const int32_t> tokens) const override {
    std::string text;
    for (const int32_t token : tokens) text += bytes_[checked(token)];
    return text;
  }

  void save(const fs::path& folder) const override { save_byte_pair(folder, names_, merges_); }

 private:
  struct Step {
    int32_t rank, result;
  };

  // Marks such as <|endoftext|> are no text that is merged.
  static bool is_mark(std::string_view name) {
    return name.starts_with('<') && name.ends_with('>');
  }

  int32_t number_of(const std::string& bytes, const std::string& place) const {
    const auto found = numbers_.find(bytes);
    require(found != numbers_.end(), ErrorKind::corrupt, "[{}] '{}' is not in the vocabulary",
            place, to_printable(bytes));
    return found->second;
  }

  std::vector<int32_t> encode_word(std::string_view word) const {
    std::vector<int32_t> tokens;
    for (const char byte : word) tokens.push_back(byte_numbers_[static_cast<unsigned char>(byte)]);
    while (tokens.size() > 1) {
      Step best{std::numeric_limits<int32_t>::max(), -1};
      size_t place = 0;
      for (size_t i = 0; i + 1 < tokens.size(); ++i) {
        const auto found = ranks_.find(key_of(tokens[i], tokens[i + 1]));
        if (found != ranks_.end() && found->second.rank < best.rank) {
          best = found->second;
          place = i;
        }
      }
      if (best.result < 0) break;
      tokens[place] = best.result;
      tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
    return tokens;
  }

  std::vector<std::string> names_, bytes_;
  std::vector<Merge> merges_;
  std::unordered_map<std::string, int32_t> numbers_;  // by bytes
  std::array<int32_t, 256> byte_numbers_{};
  std::unordered_map<uint64_t, Step> ranks_;  // by both parts
  int32_t end_of_text_ = -1;
};

std::vector<std::string> read_vocabulary(const fs::path& file) {
  try {
    return numbered_tokens(Json::parse(read_file(file)), file.string());
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", file.string(), error.what());
  }
}

struct MergesFile {
  std::vector<Merge> merges;
  std::vector<std::string> places;  // file and line of each
};

MergesFile read_merges(const fs::path& file) {
  MergesFile result;
  int64_t number = 0;
  for (const std::string& line : split(read_file(file), '\n')) {
    ++number;
    if (line.empty() || line == "\r" || (number == 1 && line.starts_with("#version"))) continue;
    const std::string where = fmt::format("{}:{}", file.string(), number);
    const std::vector<std::string> parts = split(trim(line), ' ');
    require(parts.size() == 2 && !parts[0].empty() && !parts[1].empty(), ErrorKind::corrupt,
            "[{}] got '{}', expected two tokens with a space between", where, line);
    result.merges.emplace_back(from_printable(parts[0], where), from_printable(parts[1], where));
    result.places.push_back(where);
  }
  result.places.push_back(file.string());  // where further merges would stand
  return result;
}

}  // namespace

TokenizerPtr read_byte_pair(const fs::path& vocabulary, const fs::path& merges) {
  std::vector<std::string> names = read_vocabulary(vocabulary);
  MergesFile file = read_merges(merges);
  return std::make_shared<BytePairTokenizer>(std::move(names), std::move(file.merges),
                                             vocabulary.string(),
                                             [&](size_t i) { return file.places[i]; });
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
  return std::make_shared<BytePairTokenizer>(std::move(names), std::move(merges), "vocabulary",
                                             [](size_t i) { return fmt::format("merge {}", i); });
}

}  // namespace artel::data
