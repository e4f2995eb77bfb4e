// Reports of metrics per class.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "artel/data/dataset.h"
#include "artel/data/images/image.h"
#include "artel/nn/metric.h"
#include "artel/observe/matrix.h"

namespace artel {

// The names of all classes, or their numbers if unnamed. Empty without classes.
std::vector<std::string> names_of_classes(const data::SampleLayout& layout);

// A metric as JSON: a number, "per class" as an object by class name, a matrix as a list of rows,
// or other sums.
nlohmann::ordered_json to_json(const MetricValue& metric, const std::vector<std::string>& classes);

// Text for the metrics that are not single numbers: a table of classes, matrices, and lists, each
// with a title.
std::string text_of_details(const std::vector<MetricValue>& metrics,
                            const std::vector<std::string>& classes);

// The confusion matrix as SVG; empty if it is not among the metrics.
std::string confusion_svg(const std::vector<MetricValue>& metrics,
                          const std::vector<std::string>& classes);
// The confusion matrix as pixels without text. A darker square is a larger share of its row.
data::Picture confusion_picture(const MetricValue& matrix);

}  // namespace artel
