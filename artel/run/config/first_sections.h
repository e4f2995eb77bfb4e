// The parts of a first configuration that do not depend on the kind of data. Internal to
// first_config.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "artel/run/config/first_config.h"

namespace artel {

// The properties of the data that determine the settings.
struct Problem {
  int64_t samples = 0;  // for training
  int64_t classes = 0;  // 0: values
  int64_t outputs = 1;  // of the network, for values
  bool tested = true;   // against labels or values; otherwise each sample is its own target
};

// Texts as TOML and as paths in the configuration.
std::string in_quotes(std::string_view text);
std::string list_of(const std::vector<std::string>& names);
std::string path_from(const FirstConfigOptions& options, const std::filesystem::path& data);

inline constexpr double kTestShare = 0.2;
// The number of training samples among `samples`, without the test and validation parts.
int64_t training_samples(int64_t samples, double test_share);
// Throws if the samples are too few for training and evaluation.
void check_size(const std::filesystem::path& path, int64_t samples, const char* what);
// The keys for the test and validation parts.
std::string held_out(int64_t samples, bool has_test_part);

std::string train_section(const Problem& problem);
int64_t outputs_of(const Problem& problem);
// Two hidden layers after `first`, such as `"flatten", `.
std::string dense_network(const Problem& problem, const std::string& first);

// A table, or texts in one.
FirstConfig first_config_of_table(const std::filesystem::path& path,
                                  const FirstConfigOptions& options);

}  // namespace artel
