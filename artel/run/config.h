// The configuration of a run: a TOML file, and `key=value` overrides from the command line.
//
// One table (config_keys.h) lists every key once. Reading, overriding, writing back and the page
// docs/configuration.md all follow from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artel/optim/options.h"

namespace artel {

struct DataConfig {
  std::string set;
  std::string path;
  std::string test_path;
  std::string target;
  std::string task = "automatic";
  double test_fraction = 0.1;
  double validation = 0;
  std::vector<std::string> augment;
  int64_t image_size = 0;
  int64_t context = 128;
  int64_t stride = 0;
  std::string tokenizer = "character";
  int64_t threads = 1;
};

struct ModelConfig {
  std::string name;
  std::vector<std::string> layers;
  std::string weights;
  std::vector<std::string> new_layers;
  int64_t classes = 0;
  bool small_images = false;
  int64_t width = 0;
  int64_t depth = 0;
  int64_t heads = 0;
  int64_t positions = 0;
  int64_t vocabulary = 0;
  int64_t patch = 0;
  int64_t hidden = 0;
  std::string activation;
  double epsilon = 0;
  bool untied_head = false;
  double dropout = 0;
};

// A number of bytes; in files "512 MiB", "2 GiB" or a plain number.
struct ByteSize {
  int64_t bytes = 0;
  bool operator==(const ByteSize&) const = default;
};

struct TrainConfig {
  int64_t batch_size = 32;
  bool keep_last_batch = false;
  int64_t epochs = 1;
  int64_t steps = 0;
  int64_t seed = 0;
  optim::Options optimizer = {{"name", "sgd"}};
  optim::Options schedule = {{"name", "constant"}};
  std::string loss = "cross_entropy";
  double label_smoothing = 0;
  double clip_norm = 0;
  double l1 = 0;
  double l2 = 0;
  double tolerance = 0;
  int64_t patience = 0;
  double target_accuracy = 0;
  double max_seconds = 0;
  int64_t save_every = 0;
  int64_t keep_last = 3;
  std::vector<std::string> freeze;
  bool tune = false;
  bool exact_convolutions = false;
  ByteSize memory_limit;
  bool check_numbers = false;
  bool check_memory = false;
  std::string precision = "fp32";
};

struct ClusterConfig {
  int64_t workers = 1;
  int64_t threads = 0;
  int64_t lanes = 0;
  std::string strategy = "auto";
  std::string reduction = "exact";
  std::string compress;
  int64_t local_steps = 1;
  double outer_momentum = 0;
  double outer_lr = 1;
  int64_t coordinators = 1;
  std::string transport = "auto";
  bool allow_lossy = false;
  int64_t servers = 0;
  std::optional<int64_t> delay = 0;  // nothing: "none", no limit
  bool servers_inside = false;
  int64_t push_every = 1;
  int64_t fetch_every = 1;
  int64_t synchronous_epochs = 1;
  int64_t blocks = 16;
  std::vector<std::string> block_order;
  double block_rate = 1;
  double delay_damping = 0.1;
  std::vector<std::string> filters = {"key cache", "changes"};
};

struct RunConfig {
  DataConfig data;
  ModelConfig model;
  TrainConfig train;
  ClusterConfig cluster;
};

// Reads a file and applies overrides such as "train.epochs=10" or "train.optimizer.lr=0.05" in
// their order; text needs no quotes there. Options of the optimizer and the schedule are completed
// with their defaults. Throws an Error for a file that is no TOML, an unknown key (with the nearest
// known one), a wrong type or a value out of range; it names file and line, or the override.
RunConfig read_config(const std::filesystem::path& path,
                      const std::vector<std::string>& overrides = {});
// The same for text; `name` stands for the file in messages.
RunConfig parse_config(std::string_view text, std::string_view name,
                       const std::vector<std::string>& overrides = {});
// What parse_config reads of a file. Throws if that is too long to be a configuration.
std::string read_config_text(const std::filesystem::path& path);

// TOML with every key; parse_config gives the same configuration back.
std::string to_toml(const RunConfig& config);

struct KeyDescription {
  std::string name;           // "train.batch_size"
  std::string type;           // "whole number"
  std::string default_value;  // as TOML
  std::string help;
};
std::vector<KeyDescription> config_keys();

// The page docs/configuration.md.
std::string config_markdown();

}  // namespace artel
