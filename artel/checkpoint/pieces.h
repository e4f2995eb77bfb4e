// Weights in several files, as large models are published: model-00001-of-00003.safetensors, ...
// and model.safetensors.index.json, which says which of them has each tensor.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

inline constexpr const char* kPieceIndexEnding = ".index.json";

// Whether a file of that name lies in the folder of whoever names it.
bool is_plain_name(const std::string& name);

// The file of each tensor: the index's "weight_map". `where` names the index in messages. Throws an
// Error of kind corrupt if this is not such an index, if it lists a tensor twice, or if it names a
// file outside its own folder.
std::map<std::string, std::string> parse_piece_index(const std::string& text,
                                                     const std::string& where);

// The tensors of all files that the index lists, in the order of the files. Throws an Error of kind
// not_found for a file that is missing, of kind corrupt for a tensor that is missing from its file
// or also in another one.
NamedTensors load_pieces(const std::filesystem::path& index);

}  // namespace artel::checkpoint
