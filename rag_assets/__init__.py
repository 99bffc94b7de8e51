"""Dagster only: assets, checks, jobs, schedules, sensors. The work is done in `rag_resources`."""

import warnings

# Dagster itself sets this parameter, which is still in beta, when it copies a sensor.
warnings.filterwarnings("ignore", message="Parameter `owners` of initializer `SensorDefinition")
