// Weights of TensorFlow.js: a JSON manifest of tensors, and binary files with their bytes. The
// manifest is a list of groups, or the member "weightsManifest" of a model.json of a layers or
// graph model. Tensors may be quantised to uint8 or uint16 with a scale and a minimum, or to
// float16.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "artel/base/bytes.h"
#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

// Heuristic: looks for JSON that mentions a weights manifest.
bool is_tfjs_manifest(const Bytes& bytes);

// The tensors in the order of the manifest, dequantised to f32, i32, or boolean. Names, shapes, and
// the order of axes are those of the file. `open` returns the content of a file that the manifest
// names; names that lead out of the folder are refused first. Throws an Error of kind corrupt for a
// broken manifest, a file of the wrong size, or a duplicate name; of kind unsupported for element
// types without a DType.
using OpenFile = std::function<Bytes(const std::string& name)>;
NamedTensors parse_tfjs(const Bytes& manifest, const OpenFile& open);

// Reads a manifest whose files are in its folder.
NamedTensors read_tfjs(const std::filesystem::path& manifest);

}  // namespace artel::checkpoint
