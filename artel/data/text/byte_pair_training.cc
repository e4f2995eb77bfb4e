#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>

#include "artel/base/error.h"
#include "artel/data/text/byte_pair.h"

namespace artel::data {
namespace {

using Pair = std::pair<int32_t, int32_t>;

struct PairHash {
  size_t operator()(const Pair& pair) const {
    return std::hash<int64_t>()(int64_t{pair.first} << 32 | pair.second);
  }
};

struct Word {
  std::vector<int32_t> tokens;
  int64_t count;
};

std::vector<Word> count_words(std::string_view text) {
  std::unordered_map<std::string_view, int64_t> counts;
  while (!text.empty()) {
    const size_t end = text.find(kEndOfText);
    for (std::string_view part = text.substr(0, end); !part.empty();) {
      const std::string_view word = first_word(part);
      ++counts[word];
      part.remove_prefix(word.size());
    }
    if (end == text.npos) break;
    text.remove_prefix(end + kEndOfText.size());
  }
  std::vector<Word> words;
  for (const auto& [word, count] : counts) {
    words.push_back({{}, count});
    for (const char byte : word) words.back().tokens.push_back(static_cast<unsigned char>(byte));
  }
  return words;
}

// The pairs of all words with their counts, kept up to date while pairs are merged: a merge visits
// only the words that hold it, and a heap with outdated entries gives the most frequent pair.
// Training takes time proportional to the number of changed pairs times its logarithm.
class Trainer {
 public:
  explicit Trainer(std::string_view text) : words_(count_words(text)) {
    for (int byte = 0; byte < 256; ++byte) bytes_.emplace_back(1, static_cast<char>(byte));
    for (size_t w = 0; w < words_.size(); ++w) add_pairs(static_cast<int32_t>(w), +1);
    for (const auto& [pair, entry] : pairs_) offer(pair, entry.count);
  }

  bool next(Merge& merge) {
    while (!heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      const auto found = pairs_.find(best.pair);
      if (found == pairs_.end() || found->second.count != best.count) continue;
      if (best.count < 2) return false;
      merge = {bytes_[best.pair.first], bytes_[best.pair.second]};
      apply(best.pair);
      return true;
    }
    return false;
  }

 private:
  struct Entry {
    int64_t count = 0;
    std::set<int32_t> words;
  };
  struct Candidate {
    int64_t count;
    std::string left, right;
    Pair pair;
    bool operator<(const Candidate& other) const {
      return std::tie(count, left, right) < std::tie(other.count, other.left, other.right);
    }
  };

  void offer(const Pair& pair, int64_t count) {
    heap_.push({count, bytes_[pair.first], bytes_[pair.second], pair});
  }

  void add_pairs(int32_t word, int sign) {
    const Word& w = words_[word];
    for (size_t i = 0; i + 1 < w.tokens.size(); ++i) {
      const Pair pair{w.tokens[i], w.tokens[i + 1]};
      Entry& entry = pairs_[pair];
      entry.count += sign * w.count;
      if (sign > 0) entry.words.insert(word);
      changed_.insert(pair);
    }
  }

  void apply(const Pair& pair) {
    const auto result = static_cast<int32_t>(bytes_.size());
    bytes_.push_back(bytes_[pair.first] + bytes_[pair.second]);
    changed_.clear();
    const std::set<int32_t> touched = std::move(pairs_[pair].words);
    for (const int32_t word : touched) {
      add_pairs(word, -1);
      std::vector<int32_t>& tokens = words_[word].tokens;
      size_t to = 0;
      for (size_t i = 0; i < tokens.size(); ++i, ++to) {
        const bool here =
            i + 1 < tokens.size() && tokens[i] == pair.first && tokens[i + 1] == pair.second;
        tokens[to] = here ? result : tokens[i];
        if (here) ++i;
      }
      tokens.resize(to);
      add_pairs(word, +1);
    }
    pairs_.erase(pair);
    for (const Pair& other : changed_)
      if (const auto found = pairs_.find(other); found != pairs_.end())
        offer(other, found->second.count);
  }

  std::vector<Word> words_;
  std::vector<std::string> bytes_;  // of each token
  std::unordered_map<Pair, Entry, PairHash> pairs_;
  std::set<Pair> changed_;
  std::priority_queue<Candidate> heap_;
};

}  // namespace

std::vector<Merge> train_byte_pair(std::string_view text, int64_t size) {
  constexpr int64_t kSingles = 257;  // bytes and the end of text
  require(size >= kSingles, ErrorKind::invalid_argument,
          "[byte pairs] tokens: got {}, expected at least {}", size, kSingles);
  Trainer trainer(text);
  std::vector<Merge> merges;
  Merge merge;
  while (static_cast<int64_t>(merges.size()) < size - kSingles && trainer.next(merge))
    merges.push_back(merge);
  return merges;
}

}  // namespace artel::data
