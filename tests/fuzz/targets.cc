// All fuzz targets: a file of targets/ and a row here.
#include <algorithm>

#include "tests/fuzz/target.h"

namespace artel::fuzz {

namespace augment {
Read read;
Seeds seeds;
}  // namespace augment
namespace byte_pair {
Read read;
Seeds seeds;
}  // namespace byte_pair
namespace checkpoint_manifest {
Read read;
Seeds seeds;
}  // namespace checkpoint_manifest
namespace choices {
Read read;
Seeds seeds;
}  // namespace choices
namespace cifar {
Read read;
Seeds seeds;
}  // namespace cifar
namespace codec {
Read read;
Seeds seeds;
}  // namespace codec
namespace config {
Read read;
Seeds seeds;
}  // namespace config
namespace control_message {
Read read;
Seeds seeds;
}  // namespace control_message
namespace csv {
Read read;
Seeds seeds;
}  // namespace csv
namespace dashboard {
Read read;
Seeds seeds;
}  // namespace dashboard
namespace door {
Read read;
Seeds seeds;
}  // namespace door
namespace door_member {
Read read;
Seeds seeds;
}  // namespace door_member
namespace environment {
Read read;
Seeds seeds;
}  // namespace environment
namespace gguf {
Read read;
Seeds seeds;
}  // namespace gguf
namespace handshake {
Read read;
Seeds seeds;
}  // namespace handshake
namespace hdf5 {
Read read;
Seeds seeds;
}  // namespace hdf5
namespace history {
Read read;
Seeds seeds;
}  // namespace history
namespace hub {
Read read;
Seeds seeds;
}  // namespace hub
namespace hub_member {
Read read;
Seeds seeds;
}  // namespace hub_member
namespace idx {
Read read;
Seeds seeds;
}  // namespace idx
namespace labelled_text {
Read read;
Seeds seeds;
}  // namespace labelled_text
namespace layers {
Read read;
Seeds seeds;
}  // namespace layers
namespace libsvm {
Read read;
Seeds seeds;
}  // namespace libsvm
namespace machines {
Read read;
Seeds seeds;
}  // namespace machines
namespace measured_times {
Read read;
Seeds seeds;
}  // namespace measured_times
namespace npy {
Read read;
Seeds seeds;
}  // namespace npy
namespace onnx {
Read read;
Seeds seeds;
}  // namespace onnx
namespace opencl_program {
Read read;
Seeds seeds;
}  // namespace opencl_program
namespace picture {
Read read;
Seeds seeds;
}  // namespace picture
namespace piece_index {
Read read;
Seeds seeds;
}  // namespace piece_index
namespace ps_message {
Read read;
Seeds seeds;
}  // namespace ps_message
namespace ps_text {
Read read;
Seeds seeds;
}  // namespace ps_text
namespace published_config {
Read read;
Seeds seeds;
}  // namespace published_config
namespace run_folder {
Read read;
Seeds seeds;
}  // namespace run_folder
namespace safetensors {
Read read;
Seeds seeds;
}  // namespace safetensors
namespace samples {
Read read;
Seeds seeds;
}  // namespace samples
namespace sparse_weights {
Read read;
Seeds seeds;
}  // namespace sparse_weights
namespace shared_memory {
Read read;
Seeds seeds;
}  // namespace shared_memory
namespace table {
Read read;
Seeds seeds;
}  // namespace table
namespace tar {
Read read;
Seeds seeds;
}  // namespace tar
namespace text_archive {
Read read;
Seeds seeds;
}  // namespace text_archive
namespace tfjs {
Read read;
Seeds seeds;
}  // namespace tfjs
namespace tokenizer_files {
Read read;
Seeds seeds;
}  // namespace tokenizer_files
namespace tokens {
Read read;
Seeds seeds;
}  // namespace tokens
namespace torch {
Read read;
Seeds seeds;
}  // namespace torch
namespace trace {
Read read;
Seeds seeds;
}  // namespace trace
namespace trainer_state {
Read read;
Seeds seeds;
}  // namespace trainer_state
namespace word_piece {
Read read;
Seeds seeds;
}  // namespace word_piece

const std::vector<Target>& targets() {
  static const std::vector<Target> all = {
      {"augment", augment::read, augment::seeds},
      {"byte_pair", byte_pair::read, byte_pair::seeds},
      {"checkpoint_manifest", checkpoint_manifest::read, checkpoint_manifest::seeds},
      {"choices", choices::read, choices::seeds},
      {"cifar", cifar::read, cifar::seeds},
      {"codec", codec::read, codec::seeds},
      {"config", config::read, config::seeds},
      {"control_message", control_message::read, control_message::seeds},
      {"csv", csv::read, csv::seeds},
      {"dashboard", dashboard::read, dashboard::seeds},
      {"door", door::read, door::seeds},
      {"door_member", door_member::read, door_member::seeds},
      {"environment", environment::read, environment::seeds},
      {"gguf", gguf::read, gguf::seeds},
      {"handshake", handshake::read, handshake::seeds},
      {"hdf5", hdf5::read, hdf5::seeds},
      {"history", history::read, history::seeds},
      {"hub", hub::read, hub::seeds},
      {"hub_member", hub_member::read, hub_member::seeds},
      {"idx", idx::read, idx::seeds},
      {"labelled_text", labelled_text::read, labelled_text::seeds},
      {"layers", layers::read, layers::seeds},
      {"libsvm", libsvm::read, libsvm::seeds},
      {"machines", machines::read, machines::seeds},
      {"measured_times", measured_times::read, measured_times::seeds},
      {"npy", npy::read, npy::seeds},
      {"onnx", onnx::read, onnx::seeds},
      {"opencl_program", opencl_program::read, opencl_program::seeds},
      {"picture", picture::read, picture::seeds},
      {"piece_index", piece_index::read, piece_index::seeds},
      {"ps_message", ps_message::read, ps_message::seeds},
      {"ps_text", ps_text::read, ps_text::seeds},
      {"published_config", published_config::read, published_config::seeds},
      {"run_folder", run_folder::read, run_folder::seeds},
      {"safetensors", safetensors::read, safetensors::seeds},
      {"samples", samples::read, samples::seeds},
      {"sparse_weights", sparse_weights::read, sparse_weights::seeds},
      {"shared_memory", shared_memory::read, shared_memory::seeds},
      {"table", table::read, table::seeds},
      {"tar", tar::read, tar::seeds},
      {"text_archive", text_archive::read, text_archive::seeds},
      {"tfjs", tfjs::read, tfjs::seeds},
      {"tokenizer_files", tokenizer_files::read, tokenizer_files::seeds},
      {"tokens", tokens::read, tokens::seeds},
      {"torch", torch::read, torch::seeds},
      {"trace", trace::read, trace::seeds},
      {"trainer_state", trainer_state::read, trainer_state::seeds},
      {"word_piece", word_piece::read, word_piece::seeds},
  };
  return all;
}

const Target& target(std::string_view name) {
  const auto found = std::ranges::find(targets(), name, &Target::name);
  require(found != targets().end(), ErrorKind::not_found,
          "there is no fuzz target '{}'; tests/fuzz/targets.cc lists them", name);
  return *found;
}

}  // namespace artel::fuzz
