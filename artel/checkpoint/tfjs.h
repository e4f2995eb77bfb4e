// Weights as TensorFlow.js keeps them: a manifest in JSON that lists tensors, and binary files with
// their bytes, one after another. The manifest is a list of groups, or the member "weightsManifest"
// of a model.json (layers and graph models alike). Tensors may be quantised: uint8 or uint16 with a
// scale and a minimum, or float16.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "artel/base/bytes.h"
#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

// Whether a file that is JSON holds such a manifest, by its first bytes and the word for it.
bool is_tfjs_manifest(const Bytes& bytes);

// The tensors in the order of the manifest: f32, i32 and boolean, unquantised. Names, shapes and
// the order of axes are the file's. `open` gives the content of a file that the manifest names;
// names that lead out of a folder are refused before. Throws an Error of kind corrupt for a broken
// manifest, for files that are shorter or longer than it says, and for a name that occurs twice; of
// kind unsupported for an element type that Artel does not have.
using OpenFile = std::function<Bytes(const std::string& name)>;
NamedTensors parse_tfjs(const Bytes& manifest, const OpenFile& open);

// The same for a manifest whose files lie beside it.
NamedTensors read_tfjs(const std::filesystem::path& manifest);

}  // namespace artel::checkpoint
