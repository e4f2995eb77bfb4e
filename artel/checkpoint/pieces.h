// Weights split over several files, as large models are published:
// model-00001-of-00003.safetensors, ... and model.safetensors.index.json, which maps tensors to
// files.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

inline constexpr const char* kPieceIndexEnding = ".index.json";

// True for a file name without folders.
bool is_plain_name(const std::string& name);

// The file of each tensor, from the index's "weight_map". `where` names the index in messages.
// Throws an Error of kind corrupt for an invalid index, a duplicate tensor, or a file outside the
// index's folder.
std::map<std::string, std::string> parse_piece_index(const std::string& text,
                                                     const std::string& where);

// The tensors of all listed files, in the order of the files. Throws an Error of kind not_found for
// a missing file, and of kind corrupt for a tensor that is missing from its file or also in another
// one.
NamedTensors load_pieces(const std::filesystem::path& index);

}  // namespace artel::checkpoint
