// The configuration of a run: a TOML file, and `key=value` overrides from the command line.
//
//   artel::RunConfig config = artel::read_config("mnist.toml", {"train.epochs=3"});
//   config.train.batch_size = 256;
//   artel::Run run(config);
//
// Every key is listed once: in one table (config_keys.h), or by the strategy that it belongs to
// (train/strategies/registry.h). Reading, overriding, writing back, help and the page
// docs/configuration.md all follow from that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/keys.h"
#include "artel/optim/options.h"
#include "artel/train/strategy_options.h"

namespace artel {

struct DataConfig {
  std::string set;
  std::string path;
  std::string test_path;
  std::string target;
  std::string task = "automatic";
  std::vector<std::string> ignore;
  std::vector<std::string> categorical;
  bool scale_target = true;
  bool decimal_comma = false;
  double test_fraction = 0.1;
  int64_t samples = 0;
  double validation = 0;
  bool balanced = false;
  int64_t folds = 0;
  int64_t fold = 0;
  std::vector<std::string> augment;
  int64_t image_size = 0;
  bool skip_broken = false;
  int64_t context = 128;
  int64_t stride = 0;
  bool lines = false;
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
  int64_t key_heads = 0;
  int64_t positions = 0;
  int64_t vocabulary = 0;
  int64_t patch = 0;
  int64_t hidden = 0;
  std::string activation;
  double epsilon = 0;
  double rotary_base = 0;
  bool untied_head = false;
  double dropout = 0;
  std::string adapters;
  std::vector<std::string> units;
};

// A number of bytes; in files "512 MiB", "2 GiB" or a plain number.
struct ByteSize {
  int64_t bytes = 0;
  bool operator==(const ByteSize&) const = default;
};

// A number of workers. In files a number, or "2..8": the run continues with 2 or more and accepts
// at most 8.
struct WorkerCount {
  int64_t least = 1, most = 1;
  bool is_range = false;
  bool operator==(const WorkerCount&) const = default;
};

// Samples per step: of all workers together, or of each one. In files a number, or "32 per worker".
// A run fixes the total when it begins (see fixed_batch_size).
struct BatchSize {
  int64_t samples = 32;
  bool per_worker = false;

  BatchSize(int64_t count = 32, bool each = false) : samples(count), per_worker(each) {}
  int64_t of(int64_t workers) const { return per_worker ? samples * workers : samples; }
  operator int64_t() const { return samples; }
};

// Weights of the classes. In files "balanced", or a list of numbers. Default: equal weights.
struct ClassWeights {
  bool balanced = false;
  std::vector<double> numbers = {};
  bool operator==(const ClassWeights&) const = default;
};

struct TrainConfig {
  BatchSize batch_size;
  bool keep_last_batch = false;
  int64_t epochs = 1;
  int64_t steps = 0;
  int64_t seed = 0;
  optim::Options optimizer = {{"name", "sgd"}};
  optim::Options schedule = {{"name", "constant"}};
  std::string loss = "cross_entropy";
  std::vector<std::string> metrics;
  double label_smoothing = 0;
  ClassWeights class_weights;
  double clip_norm = 0;
  std::string best_by = "loss";
  int64_t patience = 0;
  double target_accuracy = 0;
  bool test = true;
  int64_t test_batches = 0;
  int64_t noise_every = 0;
  double max_seconds = 0;
  int64_t save_every = 0;
  int64_t keep_checkpoints = 3;
  std::vector<std::string> freeze;
  bool cache = false;
  bool tune = false;
  bool exact_convolutions = false;
  ByteSize memory_limit;
  bool check_numbers = false;
  bool check_memory = false;
  std::string precision = "fp32";
};

// Learning from trained networks, too (artel distil).
struct DistilConfig {
  std::vector<std::string> teachers;
  double temperature = 4;
  double weight = 0.9;
  bool cache = true;
};

// Weights that are zero, or become so (artel prune).
struct PruneConfig {
  bool keep_zeros = false;
  double weights = 0;
  std::string scope = "global";
  int64_t begin = 0;
  int64_t end = 0;
  int64_t every = 100;
};

struct ClusterConfig {
  WorkerCount workers;
  int64_t threads = 0;
  std::string device = "cpu";
  double device_timeout = 300;
  int64_t lanes = 0;
  ByteSize memory;
  ByteSize bucket_size;
  std::string strategy = "auto";
  std::string transport = "auto";
  bool encrypt = false;
  std::string instructions = "own";
  bool elastic = true;
  int64_t restarts = 8;
  int64_t checkpoint_copies = 1;
  double patience = 20;
  double join_timeout = 60;
  double timeout = 300;
  double wait = 3600;
  int64_t servers = 0;
  bool servers_inside = false;
  StrategyOptions strategy_options;  // keys declared by strategies, including those of [train]
};

struct ObserveConfig {
  bool live = true;
  std::string on_event;
  std::string tensorboard = "all";
  int64_t mistakes = 24;
  int64_t sample_tokens = 100;
  std::string sample_prompt;
};

struct RunConfig {
  DataConfig data;
  ModelConfig model;
  TrainConfig train;
  DistilConfig distil;
  PruneConfig prune;
  ClusterConfig cluster;
  ObserveConfig observe;
  std::vector<std::string> warnings;  // of reading the configuration, such as renamed keys
  StrategyOptions own = {};           // keys registered by the program
};

// Adds custom keys to all configurations, which are read, written, and documented like the others.
// Their values are in RunConfig::own:
//
//   artel::register_keys("gossip", artel::keys_of<GossipOptions>());  // see base/keys.h
//   ... run.config().own.of<GossipOptions>().neighbours ...
//
// Keys registered under the same title replace the earlier ones. All workers must register the same
// keys with equal values; they compare them before the first step.
void register_keys(const std::string& title, VisitKeys keys);
// Names and values of these keys, as TOML.
std::vector<std::pair<std::string, std::string>> own_key_values(const RunConfig& config);

// Reads a file and applies overrides such as "train.epochs=10" or "train.optimizer.lr=0.05" in
// order. Text in overrides needs no quotes. Makes paths absolute: paths in the file are relative to
// its folder, paths in overrides to the working folder. Fills in the defaults of optimizer and
// schedule options. Logs warnings. Throws an Error with file and line, or the override, for invalid
// TOML, an unknown key (with the nearest known one), a wrong type, or a value out of range.
RunConfig read_config(const std::filesystem::path& path,
                      const std::vector<std::string>& overrides = {});
// The defaults with overrides, without a file.
RunConfig default_config(const std::vector<std::string>& overrides);
// Parses text; messages call it `name`. Without a `folder` for relative paths, they stay unchanged.
// The caller logs warnings, once for all workers.
RunConfig parse_config(std::string_view text, std::string_view name,
                       const std::vector<std::string>& overrides = {},
                       const std::optional<std::filesystem::path>& folder = {});
void log_warnings(const RunConfig& config);
// Reads a file for parse_config. Throws if it is too long to be a configuration.
std::string read_config_text(const std::filesystem::path& path);

// TOML with every key; parse_config restores the same configuration from it.
std::string to_toml(const RunConfig& config);

// All keys, with the values of a configuration in place of the defaults.
std::vector<KeyDescription> config_keys(const RunConfig& config = {});

// A strategy with its keys, which several may share.
struct StrategyDescription {
  std::string title, help;
  std::vector<std::string> names;  // of cluster.strategy
  std::vector<KeyDescription> keys;
};
std::vector<StrategyDescription> config_strategies();

// The page docs/configuration.md.
std::string config_markdown();

}  // namespace artel
