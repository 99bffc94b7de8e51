"""The job that builds vector indexes for a large tenant alone."""

import dagster as dg
from pydantic import Field

from rag_assets.labels import labelled
from rag_assets.launchpad import LaunchpadConfig
from rag_assets.runs.failures import told_as_failure
from rag_resources.core.messages import Message
from rag_resources.resources import RagResource


class PromoteTenantConfig(LaunchpadConfig):
    """Whom to give them, as the launchpad asks for it."""

    tenant: str = Field(description=Message.FIELD_TENANT)


@dg.op(description=Message.JOB_PROMOTE_TENANT)
def give_own_indexes(
    context: dg.OpExecutionContext, config: PromoteTenantConfig, rag: RagResource
) -> None:
    """Build the indexes that are missing."""
    with told_as_failure():
        built = rag.tenants.promote(config.tenant)
    context.log.info(Message.TENANT_PROMOTED.format(name=config.tenant, count=len(built)))
    context.add_output_metadata(labelled({"built_indexes": len(built)}))


@dg.job(
    name="promote_tenant",
    description=Message.JOB_PROMOTE_TENANT,
    config=dg.RunConfig(ops={"give_own_indexes": PromoteTenantConfig(tenant="")}),
)
def promote_tenant_job() -> None:
    """Give a tenant its own vector indexes."""
    give_own_indexes()
