#include "artel/checkpoint/weights.h"

#include <algorithm>
#include <map>
#include <set>

#include "artel/base/text.h"
#include "artel/base/zip.h"
#include "artel/checkpoint/gguf_weights.h"
#include "artel/checkpoint/hdf5.h"
#include "artel/checkpoint/onnx.h"
#include "artel/checkpoint/pieces.h"
#include "artel/checkpoint/safetensors.h"
#include "artel/checkpoint/tfjs.h"
#include "artel/checkpoint/torch_file.h"
#include "artel/tensor/npy.h"

namespace artel::checkpoint {
namespace {

constexpr size_t kMostLines = 20;  // per section of a report

bool is_torch_zip(const Bytes& bytes) {
  const ZipArchive archive(bytes);
  const auto& entries = archive.entries();
  return std::any_of(entries.begin(), entries.end(),
                     [](const auto& entry) { return entry.name.ends_with("/data.pkl"); });
}

void add_lines(std::string& text, const std::string& title, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  text += fmt::format("{} ({}):\n", title, lines.size());
  for (size_t i = 0; i < std::min(lines.size(), kMostLines); ++i) text += "  " + lines[i] + "\n";
  if (lines.size() > kMostLines)
    text += fmt::format("  ... and {} more\n", lines.size() - kMostLines);
}

}  // namespace

NamedTensors parse_weights(const Bytes& bytes) {
  if (is_legacy_torch(bytes) || (is_zip(bytes) && is_torch_zip(bytes)))
    return parse_torch(bytes, TorchPart::model);
  if (is_zip(bytes)) return parse_npz(bytes);
  if (is_npy(bytes)) return {{"tensor", parse_npy(bytes)}};
  if (is_hdf5(bytes)) return parse_hdf5(bytes);
  if (is_gguf(bytes)) return gguf_weights(parse_gguf(bytes));
  // A safetensors file has no magic number; its header is a JSON object.
  require(
      bytes.data.size() > 8 && bytes.data[8] == std::byte{'{'}, ErrorKind::corrupt,
      "[{}] offset 0: not a weight file: expected safetensors, PyTorch, NPZ, NPY, HDF5, GGUF, ONNX "
      "or TensorFlow.js",
      bytes.name);
  return parse_safetensors(bytes).tensors;
}

NamedTensors load_weights(const std::filesystem::path& path) {
  if (path.string().ends_with(kPieceIndexEnding)) return load_pieces(path);
  const Bytes bytes = map_file(path);
  if (path.extension() == ".json" && is_tfjs_manifest(bytes)) return read_tfjs(path);
  if (is_onnx(bytes)) return read_onnx(path);
  return parse_weights(bytes);
}

void save_weights(const std::filesystem::path& path, const NamedTensors& tensors) {
  const std::string extension = path.extension().string();
  if (extension == ".safetensors") {
    write_safetensors(path, tensors);
    return;
  }
  if (extension == ".npz") return write_npz(path, tensors);
  require(extension == ".npy" && tensors.size() == 1, ErrorKind::invalid_argument,
          "[{}] cannot write {} tensors with the extension '{}'; try .safetensors or .npz",
          path.string(), tensors.size(), extension);
  write_npy(path, tensors[0].tensor);
}

Match match(const std::vector<Expected>& expected, const NamedTensors& found) {
  std::map<std::string, Shape> shapes;
  for (const NamedTensor& entry : found) shapes[entry.name] = entry.tensor.shape();
  std::set<std::string> wanted;
  Match result;
  for (const Expected& parameter : expected) {
    wanted.insert(parameter.name);
    const auto at = shapes.find(parameter.name);
    if (at == shapes.end())
      result.missing.push_back(parameter.name);
    else if (at->second != parameter.shape)
      result.mismatched.push_back({parameter.name, parameter.shape, at->second});
  }
  for (const NamedTensor& entry : found)
    if (!wanted.count(entry.name)) result.unexpected.push_back(entry.name);
  return result;
}

std::string Match::report() const {
  std::string text;
  std::vector<std::string> lines;
  for (size_t i = 0; i < missing.size(); ++i)
    lines.push_back(i < kMostLines ? missing[i] + did_you_mean(missing[i], unexpected) : "");
  add_lines(text, "missing in the file", lines);
  add_lines(text, "not in the model", unexpected);
  lines.clear();
  for (const Mismatch& entry : mismatched)
    lines.push_back(fmt::format("{}: got {}, expected {}", entry.name, to_string(entry.found),
                                to_string(entry.expected)));
  add_lines(text, "different shapes", lines);
  return text;
}

}  // namespace artel::checkpoint
