"""The job that builds vector indexes for a large tenant alone."""

import dagster as dg
from pydantic import Field

from rag_assets.labels import labelled
from rag_assets.launchpad import LaunchpadConfig
from rag_assets.runs.failures import told_as_failure
from rag_resources.languages.messages import _
from rag_resources.resources import RagResource


class PromoteTenantConfig(LaunchpadConfig):
    """Whom to give them, as the launchpad asks for it."""

    tenant: str = Field(description=_("Name of the tenant, that of TENANT."))


@dg.op(
    description=_(
        "Gives a tenant with more than 10,000 passages (1,000, if windows are searched) vector "
        "indexes of its own: those of all tenants find too little of it. The same as rag tenant "
        "promote."
    )
)
def give_own_indexes(
    context: dg.OpExecutionContext, config: PromoteTenantConfig, rag: RagResource
) -> None:
    """Build the indexes that are missing."""
    with told_as_failure():
        built = rag.tenants.promote(config.tenant)
    context.log.info(
        _("Tenant {name} has vector indexes of its own; {count} were built now.").format(
            name=config.tenant, count=len(built)
        )
    )
    context.add_output_metadata(labelled({"built_indexes": len(built)}))


@dg.job(
    name="promote_tenant",
    description=_(
        "Gives a tenant with more than 10,000 passages (1,000, if windows are searched) vector "
        "indexes of its own: those of all tenants find too little of it. The same as rag tenant "
        "promote."
    ),
    config=dg.RunConfig(ops={"give_own_indexes": PromoteTenantConfig(tenant="")}),
)
def promote_tenant_job() -> None:
    """Give a tenant its own vector indexes."""
    give_own_indexes()
