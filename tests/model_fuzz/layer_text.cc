#include "tests/model_fuzz/layer_text.h"

#include "artel/base/text.h"

namespace artel::model_fuzz {
namespace {

// Adds the parts of the block that begins at `at`, and returns where it ends.
size_t add_parts(const Words& words, size_t at, std::vector<Part>& parts) {
  for (;;) {
    Part part = {at, at, {}};
    while (at < words.size() && words[at] != "|" && words[at] != "}") {
      if (words[at] == "{") {
        const size_t open = at;
        at = add_parts(words, at + 1, parts);
        part.blocks.emplace_back(open, at);
      }
      ++at;
    }
    part.end = std::min(at, words.size());
    parts.push_back(std::move(part));
    if (at >= words.size() || words[at] == "}") return at;
    ++at;
  }
}

// The words with [begin, end) replaced by others.
Words replaced(const Words& words, size_t begin, size_t end, const Words& by = {}) {
  Words result(words.begin(), words.begin() + static_cast<long>(begin));
  result.insert(result.end(), by.begin(), by.end());
  result.insert(result.end(), words.begin() + static_cast<long>(end), words.end());
  return result;
}

}  // namespace

Words words_of(const std::vector<std::string>& layers) { return split(join(layers, " | "), ' '); }

std::vector<std::string> layers_of(const Words& words) {
  std::vector<std::string> layers;
  std::vector<std::string> layer;
  int depth = 0;
  for (const std::string& word : words) {
    if (word == "{") ++depth;
    if (word == "}") --depth;
    if (depth > 0 || word != "|") {
      layer.push_back(word);
      continue;
    }
    layers.push_back(join(layer, " "));
    layer.clear();
  }
  layers.push_back(join(layer, " "));
  return layers;
}

std::vector<Part> parts_of(const Words& words) {
  std::vector<Part> parts;
  add_parts(words, 0, parts);
  return parts;
}

const std::string& kind_of(const Words& words, const Part& part) {
  const bool named = words[part.begin].ends_with(':') && part.begin + 1 < part.end;
  return words[part.begin + (named ? 1 : 0)];
}

std::vector<Words> fewer_parts(const Words& words) {
  std::vector<Words> results;
  for (const Part& part : parts_of(words)) {
    for (const auto& [open, close] : part.blocks) {
      results.push_back(replaced(
          words, part.begin, part.end,
          {words.begin() + static_cast<long>(open) + 1, words.begin() + static_cast<long>(close)}));
      if (words[open - 1] == "shortcut") results.push_back(replaced(words, open - 1, close + 1));
    }
    // With the separator on one side of it.
    if (part.end < words.size() && words[part.end] == "|")
      results.push_back(replaced(words, part.begin, part.end + 1));
    else if (part.begin > 0 && words[part.begin - 1] == "|")
      results.push_back(replaced(words, part.begin - 1, part.end));
  }
  return results;
}

}  // namespace artel::model_fuzz
