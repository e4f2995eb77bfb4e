// What metrics say of each class, for people and scripts.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "artel/data/dataset.h"
#include "artel/data/image.h"
#include "artel/nn/metric.h"
#include "artel/observe/matrix.h"

namespace artel {

// Of all classes; numbers for those that have none. Empty without classes.
std::vector<std::string> names_of_classes(const data::SampleLayout& layout);

// A metric as JSON: its number; "per class" by the names of the classes; others as their sums, a
// matrix as a list of rows.
nlohmann::ordered_json to_json(const MetricValue& metric, const std::vector<std::string>& classes);

// Of the metrics that are not single numbers: a table of the classes, matrices, lists; each with a
// title.
std::string text_of_details(const std::vector<MetricValue>& metrics,
                            const std::vector<std::string>& classes);

// The picture of the confusion matrix; empty if there is none among the metrics.
std::string confusion_svg(const std::vector<MetricValue>& metrics,
                          const std::vector<std::string>& classes);
// The same as pixels, without texts: a darker square is a larger share of its row.
data::Picture confusion_picture(const MetricValue& matrix);

}  // namespace artel
