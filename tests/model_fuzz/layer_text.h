// The layers of a network as words, so that parts of them can be found, dropped and opened:
// `residual { conv 3 1 | relu } no_relu` is a part with a block of two parts in it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace artel::model_fuzz {

// All layers, with "|" between them.
using Words = std::vector<std::string>;
Words words_of(const std::vector<std::string>& layers);
std::vector<std::string> layers_of(const Words& words);

// A layer at any depth: words [begin, end). `blocks` are the places of its own "{", each with that
// of the "}" that closes it.
struct Part {
  size_t begin, end;
  std::vector<std::pair<size_t, size_t>> blocks;
};
std::vector<Part> parts_of(const Words& words);

// Which kind of layer a part is, after its name if it has one.
const std::string& kind_of(const Words& words, const Part& part);

// Variants with a part less, with a block in place of the layer that has it, or without a shortcut.
std::vector<Words> fewer_parts(const Words& words);

}  // namespace artel::model_fuzz
